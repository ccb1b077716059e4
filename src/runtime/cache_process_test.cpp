// The cache under many processes, some of which are killed. Which process does what is given by
// seeds; when it is killed differs from run to run, and must not matter.
#include <csignal>
#include <ctime>
#include <functional>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/cache_test_support.h"
#include "support/file.h"

namespace kiln::runtime {
namespace {

constexpr int kProcesses = 8;
constexpr int kNobody = 65534;

// Runs `work` in a process of its own; it says whether all was right.
pid_t start(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  return child;
}

// What waitpid says of it.
int status_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

bool was_right(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

bool was_killed(int status, int signal) {
  return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

// The calling process gets SIGKILL so much later, wherever it is then.
bool kill_me_after(long microseconds) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  timer_t timer{};
  itimerspec when{};
  when.it_value.tv_nsec = 1000 * microseconds;
  return timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
         timer_settime(timer, 0, &when, nullptr) == 0;
}

// Finds or stores a random one of `keys` keys. False: found what was not stored.
bool use_once(const Cache& cache, std::mt19937& random, int keys) {
  const int number = static_cast<int>(random() % static_cast<unsigned>(keys));
  if (random() % 2 == 0) return cache.store(key_of(number), bytes_of(number)).has_value();
  const auto found = cache.find(key_of(number));
  return !found || *found == bytes_of(number);
}

bool use(const Cache& cache, unsigned seed, int times, int keys) {
  std::mt19937 random(seed);
  for (int i = 0; i < times; ++i) {
    if (!use_once(cache, random, keys)) return false;
  }
  return true;
}

TEST_F(CacheTest, ProcessesShareAFolder) {
  std::vector<pid_t> children;
  for (unsigned seed = 0; seed < kProcesses; ++seed) {
    children.push_back(start([&] { return use(cache(), seed, 100, 5); }));
  }
  for (const pid_t child : children) EXPECT_TRUE(was_right(status_of(child)));
  for (int number = 0; number < 5; ++number) {
    EXPECT_EQ(cache().find(key_of(number)), bytes_of(number)) << number;
  }
  EXPECT_EQ(files(), 5U);
}

// There is room for about three of the twelve: nearly every store evicts what others read.
TEST_F(CacheTest, ProcessesEvictWhatOthersRead) {
  constexpr std::uint64_t kBytesMax = 20000;
  std::vector<pid_t> children;
  for (unsigned seed = 0; seed < kProcesses; ++seed) {
    children.push_back(start([&] { return use(cache(kBytesMax), seed, 100, 12); }));
  }
  for (const pid_t child : children) EXPECT_TRUE(was_right(status_of(child)));
  ASSERT_TRUE(cache(kBytesMax).store(key_of(1), bytes_of(1)));
  EXPECT_EQ(cache().find(key_of(1)), bytes_of(1));
  EXPECT_LE(cache().usage().value().bytes, kBytesMax);
  EXPECT_GE(cache().usage().value().entries, 1);
}

TEST_F(CacheTest, ProcessesClearWhatOthersClear) {
  std::vector<pid_t> children;
  for (unsigned seed = 0; seed < kProcesses; ++seed) {
    children.push_back(start([&] {
      bool right = true;
      for (unsigned i = 0; right && i < 30; ++i) {
        right = use(cache(), 100 * seed + i, 5, 12) && cache().clear();
      }
      return right;
    }));
  }
  for (const pid_t child : children) EXPECT_TRUE(was_right(status_of(child)));
  EXPECT_TRUE(cache().clear());
  EXPECT_EQ(files(), 0U);
}

TEST_F(CacheTest, KilledProcessesLeaveNothingWrong) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) {
      const auto seed = static_cast<unsigned>(random());
      const long microseconds = static_cast<long>(1 + random() % 4000);
      children.push_back(start([&] {
        if (!kill_me_after(microseconds)) return false;
        std::mt19937 own(seed);
        while (use_once(cache(), own, 5)) {
        }
        return false;
      }));
    }
    for (const pid_t child : children) EXPECT_TRUE(was_killed(status_of(child), SIGKILL)) << round;
  }
  for (int number = 0; number < 5; ++number) {
    const std::string path = path_of(key_of(number));
    const bool there = std::filesystem::exists(path);
    EXPECT_EQ(cache().find(key_of(number)).has_value(), there) << number;  // no entry is damaged
    ASSERT_TRUE(cache().store(key_of(number), bytes_of(number)));
    EXPECT_EQ(cache().find(key_of(number)), bytes_of(number)) << number;
  }
}

// The system kills a process that writes past its limit: here, at each byte of the entry.
TEST_F(CacheTest, KilledWhileItWrites) {
  for (rlim_t bytes = 0; bytes < 90; bytes += 3) {
    const pid_t child = start([&] {
      const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
      std::signal(SIGXFSZ, SIG_DFL);
      return setrlimit(RLIMIT_FSIZE, &limit) == 0 && cache().store(key_of(1), "kernel");
    });
    ASSERT_TRUE(was_killed(status_of(child), SIGXFSZ)) << bytes;
    EXPECT_FALSE(std::filesystem::exists(path_of(key_of(1)))) << bytes;
  }
  EXPECT_EQ(cache().usage().value().entries, 0);
  ASSERT_TRUE(cache().store(key_of(1), "kernel"));
  EXPECT_EQ(cache().find(key_of(1)), "kernel");
}

// A full disk: the write fails and says so.
TEST_F(CacheTest, AFailedWriteLeavesNothing) {
  const pid_t child = start([&] {
    const rlimit limit{.rlim_cur = 50, .rlim_max = 50};
    std::signal(SIGXFSZ, SIG_IGN);
    return setrlimit(RLIMIT_FSIZE, &limit) == 0 && !cache().store(key_of(1), "kernel");
  });
  EXPECT_TRUE(was_right(status_of(child)));
  EXPECT_EQ(files(), 0U);
}

// Entries of a folder that may only be read are found; a damaged one is a miss.
TEST_F(CacheTest, AReadOnlyFolderIsRead) {
  ASSERT_TRUE(cache().store(key_of(1), "kernel"));
  ASSERT_TRUE(cache().store(key_of(2), "kernel"));
  ASSERT_TRUE(write_file(path_of(key_of(2)), "damaged"));
  for (const std::string& each : {root_, root_ + "/a", folder()}) {
    ASSERT_EQ(chmod(each.c_str(), 0555), 0);
  }
  const pid_t child = start([&] {
    if (geteuid() == 0 && setuid(kNobody) != 0) return false;  // root may write everywhere
    return cache().find(key_of(1)) == "kernel" && !cache().find(key_of(2)) &&
           !cache().store(key_of(3), "kernel") && cache().usage().value().entries == 2 &&
           !cache().clear();
  });
  EXPECT_TRUE(was_right(status_of(child)));
  for (const std::string& each : {root_, root_ + "/a", folder()}) {
    ASSERT_EQ(chmod(each.c_str(), 0755), 0);
  }
  EXPECT_EQ(files(), 2U);
}

}  // namespace
}  // namespace kiln::runtime
