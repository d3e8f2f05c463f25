// SPDX-License-Identifier: GPL-2.0
/* A dynamically linked program that does nothing: what an exec storm runs. */
int main(void)
{
	return 0;
}
