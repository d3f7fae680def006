import math, random, itertools
from fractions import Fraction
import numpy as np, highspy
from optbench.shapes.milp.program import milp, exact
from optbench.shapes.milp.mps_format import read_mps, write_mps
from optbench.shapes.milp.exact_point import exact_point, broken, as_floats
from optbench.shapes.milp.relaxation_proof import prove, proven_value, relax, highs_model
def rnd(seed):
    r=random.Random(seed); n=r.randint(2,5); m=r.randint(1,5)
    cols=[f"x{j}" for j in range(n)]
    integer=[r.random()<.6 for _ in cols]
    lower=[r.choice([0,0,-3,1.5,-math.inf]) for _ in cols]; upper=[r.choice([4,7.5,math.inf,10]) for _ in cols]
    cost=[r.choice([0,1,-2,0.1,3.25]) for _ in cols]
    trip=[];lo=[];hi=[]
    for i in range(m):
        for j in range(n):
            if r.random()<.7: trip.append((i,j,r.choice([1,-1,2,0.5,0.1,3])))
        b=r.choice([0,1,5,7.3,-2,10]); k=r.random()
        lo.append(b if k<.4 or k>.8 else -math.inf); hi.append(b+r.choice([0,3,.2]) if k>.8 else (math.inf if k<.4 else b))
    a=list(zip(*trip)) if trip else ((),(),())
    return milp(f"s{seed}",r.choice(["min","max"]),cols,cost,lower,upper,integer,[f"r{i}" for i in range(m)],lo,hi,a,r.choice([0,2.5]))
st={}
for s in range(400):
    p=rnd(s)
    t=write_mps(p); q=read_mps(t,"x"); assert write_mps(q)==t,(s)
    open('/tmp/x.mps','w').write(t); h=highspy.Highs(); h.silent(); h.readModel('/tmp/x.mps'); h.run()
    g=highspy.Highs(); g.silent(); g.passModel(highs_model(p,True)); g.run()
    a,b=h.getModelStatus(),g.getModelStatus()
    if a!=b: print(s,'status',a,b)
    st[str(a)]=st.get(str(a),0)+1
    if a==highspy.HighsModelStatus.kOptimal:
        v=h.getInfo().objective_function_value; w=(1 if p.sense=='min' else -1)*g.getInfo().objective_function_value+p.constant
        if abs(v-w)>1e-6: print(s,'value',v,w)
        x=exact_point(p,g.getSolution().col_value)
        if x is None: print(s,'no exact point'); continue
        ox=p.objective_at(x)
        if abs(float(ox)-v)>1e-6: print(s,'exact obj',float(ox),v)
        y=prove(p)
        if y is None: print(s,'no proof', relax(p).status); continue
        bnd=proven_value(p,y)
        ok = bnd<=ox if p.sense=='min' else bnd>=ox
        if not ok: print(s,'BOUND WRONG',bnd,ox)
        st['tight']=st.get('tight',0)+(abs(bnd-ox)<1e-9)
print(st)
