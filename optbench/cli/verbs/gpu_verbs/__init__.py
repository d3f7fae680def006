"""The verbs below ``optbench gpu``, a module each."""
