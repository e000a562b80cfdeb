/* A library's variable. */
static int other_value = 5;
int *other_address(void);

int *other_address(void)
{
    return &other_value;
}
