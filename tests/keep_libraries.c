// In programs with a sanitizer: no library is unloaded, so that stacks of what a driver leaks or races on name it.
int dlclose(void *library);
int dlclose(void *library) { return library == (void *)0; }
