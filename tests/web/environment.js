// Emscripten's own environment is empty; one that the program never reads is not there.
Module.preRun = [() => typeof ENV !== 'undefined' && Object.assign(ENV, process.env)];
