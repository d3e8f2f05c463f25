/* A program that does nothing: what happens is done by the libraries that it needs. */
int main(void) { return 0; }
