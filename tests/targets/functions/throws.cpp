/* A throw that passes four calls, 100 times. Prints "NAME COUNT" as calls.c does. */
#include <cstdio>
#include <map>
#include <string>

struct guard {
    explicit guard(int &left) : left(left) {}
    ~guard() { left++; }
    int &left;
};

int library_call(int x);

__attribute__((noinline)) int thrower(int more) {
    if (more == 0)
        throw std::string("over");
    int left = 0;
    guard counted(left);
    return thrower(more - 1) + left;
}

__attribute__((noinline)) int catcher(int more) {
    try {
        return thrower(more);
    } catch (const std::string &said) {
        return static_cast<int>(said.size());
    }
}

__attribute__((no_instrument_function)) int main() {
    std::map<int, int> sums;
    int sum = 0;
    for (int i = 0; i < 100; i++) {
        sum += catcher(4);
        sum += library_call(i);
        sums[i] = sum;
    }
    std::printf("catcher 100\nthrower 500\nlibrary_call 100\nsize %d\n", static_cast<int>(sums.size()));
}
