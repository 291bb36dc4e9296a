#include "model/pickle.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ff::model {
namespace {

using namespace std::string_literals;

TEST(Pickle, ACallOfOsSystemIsNamedAndNotMade) {
  const auto survey = read_pickle("cos\nsystem\n(S'echo hi'\ntR."s, "p");  // what pickle.dumps of a __reduce__ writes in protocol 0
  ASSERT_TRUE(survey);
  ASSERT_EQ(survey->imports.size(), 1U);
  EXPECT_EQ(survey->imports[0].name, "os.system");
  EXPECT_EQ(survey->imports[0].trust, Trust::dangerous);
}

TEST(Pickle, NamesThatAreComputedOrHiddenBehindTheMemoAreFound) {
  // Protocol 4: both names kept, dropped, fetched again.
  const auto hidden = read_pickle("\x80\x04\x8c\x08"s + "builtins\x94\x30\x8c\x04" + "eval\x94\x30h\x00h\x01\x93."s, "p");
  ASSERT_TRUE(hidden) << hidden.error().to_string();
  EXPECT_EQ(hidden->imports.at(0).name, "builtins.eval");
  EXPECT_EQ(hidden->imports.at(0).trust, Trust::dangerous);
  const auto computed = read_pickle("\x80\x04N\x8c\x04"s + "eval\x93."s, "p");
  ASSERT_TRUE(computed);
  EXPECT_EQ(computed->imports.at(0).trust, Trust::dangerous);
}

TEST(Pickle, TheOldInstructionThatImportsAndCallsIsSeen) {
  const auto survey = read_pickle("(S'x'\nios\nsystem\n."s, "p");
  ASSERT_TRUE(survey) << survey.error().to_string();
  EXPECT_EQ(survey->imports.at(0).name, "os.system");
}

TEST(Pickle, ListsATensorOfAStateDict) {
  // {"w": _rebuild_tensor_v2(storage('0', 6 floats), 0, (2, 3), (3, 1), ...)} as torch.save writes it.
  const std::string bytes =
      "\x80\x02}q\x00X\x01\x00\x00\x00wq\x01"
      "ctorch._utils\n_rebuild_tensor_v2\nq\x02((X\x07\x00\x00\x00storageq\x03"
      "ctorch\nFloatStorage\nq\x04X\x01\x00\x00\x00"
      "0q\x05X\x03\x00\x00\x00"
      "cpuq\x06K\x06tq\x07QK\x00K\x02K\x03\x86q\x08K\x03K\x01\x86q\x09\x89"
      "ccollections\nOrderedDict\nq\x0a)Rq\x0btq\x0cRq\x0ds."s;
  const auto survey = read_pickle(bytes, "p");
  ASSERT_TRUE(survey) << survey.error().to_string();
  ASSERT_EQ(survey->tensors.size(), 1U);
  EXPECT_EQ(survey->tensors[0].name, "w");
  EXPECT_EQ(survey->tensors[0].shape, (std::vector<std::int64_t>{2, 3}));
  ASSERT_EQ(survey->storages.size(), 1U);
  EXPECT_EQ(survey->storages[0].elements, 6);
  EXPECT_TRUE(std::all_of(survey->imports.begin(), survey->imports.end(), [](const PickleImport& i) { return i.trust == Trust::allowed; }));
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(read_pickle(std::string_view(bytes).substr(0, size), "p")) << "at " << size;
}

TEST(Pickle, DamageIsAnErrorWithItsPlace) {
  EXPECT_NE(read_pickle("\x80\x02\xfe."s, "p").error().what.find("0xfe"), std::string::npos);
  EXPECT_FALSE(read_pickle("R."s, "p"));
  EXPECT_FALSE(read_pickle("h\x05."s, "p"));
  EXPECT_FALSE(read_pickle("t."s, "p"));
  EXPECT_FALSE(read_pickle("."s, "p"));
}

TEST(Pickle, TrustFollowsTheRestrictedUnpickler) {
  EXPECT_EQ(trust_in("torch", "BFloat16Storage"), Trust::allowed);
  EXPECT_EQ(trust_in("torch._utils", "_rebuild_parameter"), Trust::allowed);
  EXPECT_EQ(trust_in("numpy._core.multiarray", "_reconstruct"), Trust::allowed);
  EXPECT_EQ(trust_in("torch", "load"), Trust::unknown);
  EXPECT_EQ(trust_in("torch.hub", "load"), Trust::dangerous);
  EXPECT_EQ(trust_in("torch._utils", "_rebuild_tensor.__globals__"), Trust::unknown);
  EXPECT_EQ(trust_in("omegaconf.dictconfig", "DictConfig"), Trust::unknown);
  EXPECT_EQ(trust_in("posix", "system"), Trust::dangerous);
  EXPECT_EQ(trust_in("builtins", "__import__"), Trust::dangerous);
  EXPECT_EQ(trust_in("builtins", "getattr"), Trust::unknown);
  EXPECT_EQ(trust_in("types", "SimpleNamespace"), Trust::unknown);
  EXPECT_EQ(trust_in("types", "CodeType"), Trust::dangerous);
  EXPECT_EQ(trust_in("os.path", "join"), Trust::dangerous);
}

}  // namespace
}  // namespace ff::model
