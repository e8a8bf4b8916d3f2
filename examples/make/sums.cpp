// Sums up the numbers that it reads, one a line, and leaves a frame behind for each.
#include "numbers.hpp"

#include <iostream>

int main() {
    std::cout << "ready" << std::endl;
    std::int64_t sum = 0, count = 0;
    for (std::int64_t value; std::cin >> value; count++) {
        ppt::numbers::number::scope frame; // stamps handle_start here, handle_end when it ends
        sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) + static_cast<std::uint64_t>(value));
        frame->value = value;
        frame->sum = sum;
        std::cout << sum << '\n';
    }
    std::cout << "numbers " << count << "\nsum " << sum << '\n';
}
