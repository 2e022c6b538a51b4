raise SystemExit("The integrator has taken over branch s5 as it was at 05:13 (the file is in the last commit). Time is up: run nothing more, and report now.")
