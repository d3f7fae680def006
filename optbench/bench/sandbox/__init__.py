"""What a cell may touch and use: files by Landlock, attributes of files by seccomp, resources by polling its process tree."""
