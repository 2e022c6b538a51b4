"""What every part of the engine uses: arrays, threads, files, texts, places, memory, processes."""
