// Accounts in C++ over the macros of RLU: a transfer changes two accounts at once, and a thread
// that adds up all of them sees one moment.
//
//     c++ -std=c++17 transfers.cc -o transfers $(pkg-config --cflags --libs manycore) -pthread && ./transfers
#include <manycore/rlu.h>

#include <array>
#include <atomic>
#include <iostream>
#include <thread>
#include <vector>

namespace {

constexpr int accounts = 8;
constexpr long initial = 100;

struct Account {
    long balance;
};

std::array<Account *, accounts> bank;

// A thread's part in it.
class Member {
public:
    Member() { RLU_THREAD_INIT(&data_); }
    ~Member() { RLU_THREAD_FINISH(&data_); }
    Member(const Member &) = delete;
    Member &operator=(const Member &) = delete;

    // Runs `f` in sessions until none of what it locks is another's.
    template <typename F> void run(F f)
    {
        for (;;) {
            RLU_READER_LOCK(&data_);
            if (f(*this)) {
                RLU_READER_UNLOCK(&data_);
                return;
            }
            RLU_ABORT(&data_);
        }
    }

    template <typename T> const T *read(T *object) { return static_cast<const T *>(RLU_DEREF(&data_, object)); }
    template <typename T> T *write(T *object) { return RLU_TRY_LOCK(&data_, &object) ? object : nullptr; }

private:
    rlu_thread_data_t data_{};
};

void transfer(Member &member, int from, int to, long amount)
{
    member.run([=](Member &session) {
        Account *payer = session.write(bank[from]);
        Account *payee = payer ? session.write(bank[to]) : nullptr;
        if (!payee)
            return false;
        payer->balance -= amount;
        payee->balance += amount;
        return true;
    });
}

long sum(Member &member)
{
    long total = 0;
    member.run([&](Member &session) {
        total = 0;
        for (Account *account : bank)
            total += session.read(account)->balance;
        return true;
    });
    return total;
}

} // namespace

int main()
{
    RLU_INIT();
    for (Account *&account : bank) {
        account = static_cast<Account *>(RLU_ALLOC(sizeof(Account)));
        account->balance = initial;
    }

    std::atomic<bool> wrong{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) {
        threads.emplace_back([t, &wrong] {
            Member member;
            unsigned seed = static_cast<unsigned>(t) + 1;
            for (int i = 0; i < 2000; i++) {
                seed = seed * 1103515245 + 12345;
                const int from = static_cast<int>(seed >> 16) % accounts, to = (from + 1 + i % (accounts - 1)) % accounts;
                if (i % 4 == 0)
                    wrong = wrong || sum(member) != accounts * initial;
                else
                    transfer(member, from, to, i % 10);
            }
        });
    }
    for (std::thread &thread : threads)
        thread.join();

    {
        Member member;
        wrong = wrong || sum(member) != accounts * initial;
    }
    for (Account *account : bank)
        RLU_FREE(nullptr, account);
    std::cout << (wrong ? "money was made or lost" : "every sum was right") << std::endl;
    return wrong || RLU_FINISH() != MANYCORE_OK;
}
