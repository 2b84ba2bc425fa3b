// The device `npu` for machines without one: PyTorch's PrivateUse1 slot with tensors in CPU memory.
//
// A tensor on it has a real data_ptr() and a device of its own, so that copies between devices are explicit and an
// operation that mixes devices is refused as on hardware. Every operation without a kernel below runs on zero-copy CPU
// aliases of its arguments, at once and in the calling thread. There is one device, one stream and nothing asynchronous.
//
// New memory is filled with a poison (0xFF: NaN in every float type, -1 in integers), so a write that is missing shows.
// The library keeps no thread and no handle: a process may fork before or after loading it.

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace {

constexpr auto kNpu = c10::DeviceType::PrivateUse1;
constexpr int kPoison = 0xFF;
const c10::Device kDevice(kNpu, 0);

// ---------------------------------------------------------------- memory

void* poisoned(size_t nbytes) {
  void* memory = c10::alloc_cpu(nbytes);
  if (nbytes != 0) {
    std::memset(memory, kPoison, nbytes);
  }
  return memory;
}

struct DeviceAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t nbytes) override {
    void* memory = poisoned(nbytes);
    return {memory, memory, &c10::free_cpu, kDevice};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &c10::free_cpu;
  }
  void copy_data(void* to, const void* from, size_t nbytes) const override {
    std::memcpy(to, from, nbytes);
  }
};

DeviceAllocator device_allocator;
REGISTER_ALLOCATOR(kNpu, &device_allocator)

// Page-locked host memory. It is ordinary memory here; what is remembered is that it was asked for.
struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t nbytes) override {
    void* memory = poisoned(nbytes);
    const std::lock_guard<std::mutex> guard(mutex_);
    ranges_[static_cast<const char*>(memory)] = nbytes;
    return {memory, memory, &PinnedAllocator::release, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &PinnedAllocator::release;
  }
  void copy_data(void* to, const void* from, size_t nbytes) const override {
    std::memcpy(to, from, nbytes);
  }
  bool contains(const void* address) const {
    const std::lock_guard<std::mutex> guard(mutex_);
    auto next = ranges_.upper_bound(static_cast<const char*>(address));
    if (next == ranges_.begin()) {
      return false;
    }
    const auto& [start, nbytes] = *std::prev(next);
    return static_cast<const char*>(address) < start + nbytes;
  }

 private:
  static void release(void* memory);
  mutable std::mutex mutex_;
  std::map<const char*, size_t> ranges_;
};

PinnedAllocator pinned_allocator;

void PinnedAllocator::release(void* memory) {
  {
    const std::lock_guard<std::mutex> guard(pinned_allocator.mutex_);
    pinned_allocator.ranges_.erase(static_cast<const char*>(memory));
  }
  c10::free_cpu(memory);
}

void grow_storage(const c10::Storage& storage, size_t nbytes) {
  auto memory = device_allocator.allocate(nbytes);
  std::memcpy(memory.get(), storage.data(), std::min<size_t>(nbytes, storage.nbytes()));
  auto& target = const_cast<c10::Storage&>(storage);
  target.set_data_ptr(std::move(memory));
  target.set_nbytes(nbytes);
}

// ---------------------------------------------------------------- the device, its one stream, its answers

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override {
    return kNpu;
  }
  c10::Device exchangeDevice(c10::Device) const override {
    return kDevice;
  }
  c10::Device getDevice() const override {
    return kDevice;
  }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override {
    return c10::Stream(c10::Stream::DEFAULT, kDevice);
  }
  c10::Stream getDefaultStream(c10::Device) const override {
    return c10::Stream(c10::Stream::DEFAULT, kDevice);
  }
  c10::Stream getNewStream(c10::Device, int) const override {
    return c10::Stream(c10::Stream::DEFAULT, kDevice);
  }
  c10::Stream exchangeStream(c10::Stream) const override {
    return c10::Stream(c10::Stream::DEFAULT, kDevice);
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return 1;
  }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override {
    return true;
  }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream&) const override {
    return true;
  }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {}
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isAvailable() const override {
    return true;
  }
  bool hasPrimaryContext(c10::DeviceIndex) const override {
    return true;
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    return &pinned_allocator;
  }
  bool isPinnedPtr(const void* address) const override {
    return pinned_allocator.contains(address);
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t nbytes) const override {
    grow_storage(storage, nbytes);
  }
};

Hooks hooks;
[[maybe_unused]] const bool hooks_registered = [] {
  at::RegisterPrivateUse1HooksInterface(&hooks);
  return true;
}();

// ---------------------------------------------------------------- kernels that create, alias and copy

bool on_device(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kNpu;
}

// A CPU tensor over the same bytes. Its storage keeps the device storage alive.
at::Tensor cpu_alias(const at::Tensor& tensor) {
  if (!on_device(tensor)) {
    return tensor;
  }
  const auto& storage = tensor.storage();
  auto* owner = new c10::Storage(storage);
  c10::DataPtr memory(
      storage.mutable_data(), owner, [](void* kept) { delete static_cast<c10::Storage*>(kept); }, at::kCPU);
  auto shared = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), storage.nbytes(), std::move(memory), c10::GetAllocator(at::kCPU), true);
  auto alias = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(std::move(shared)), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  alias.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  return alias;
}

const c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(
    c10::SymIntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>,
    std::optional<at::Device>,
    std::optional<bool>,
    std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(
      C10_AS_INTARRAYREF_SLOW(size), &device_allocator, kKeys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(
    c10::SymIntArrayRef size,
    c10::SymIntArrayRef stride,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>,
    std::optional<at::Device>,
    std::optional<bool>) {
  return at::detail::empty_strided_generic(
      C10_AS_INTARRAYREF_SLOW(size),
      C10_AS_INTARRAYREF_SLOW(stride),
      &device_allocator,
      kKeys,
      c10::dtype_or_default(dtype));
}

at::Tensor to_device(const at::Tensor& tensor) {
  auto copy = empty_strided(
      c10::fromIntArrayRefSlow(tensor.sizes()),
      c10::fromIntArrayRefSlow(tensor.strides()),
      tensor.scalar_type(),
      {},
      {},
      {});
  cpu_alias(copy).copy_(tensor);
  return copy;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool) {
  cpu_alias(dst).copy_(cpu_alias(self));
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

const at::Tensor& resize_(const at::Tensor& self, c10::SymIntArrayRef size, std::optional<at::MemoryFormat>) {
  const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  size_t nbytes = self.itemsize();
  for (const auto extent : sizes) {
    nbytes *= static_cast<size_t>(extent);
  }
  nbytes += static_cast<size_t>(self.storage_offset()) * self.itemsize();
  if (nbytes > self.storage().nbytes()) {
    grow_storage(self.storage(), nbytes);
  }
  self.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return self;
}

at::Tensor& set_part_of_storage(
    at::Tensor& self, at::Storage source, c10::SymInt offset, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  TORCH_CHECK(source.device().type() == kNpu, "set_: expected a storage on npu, but got one on ", source.device());
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(source));
  self.unsafeGetTensorImpl()->set_sizes_and_strides(
      C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), offset.expect_int());
  return self;
}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage source) {
  const auto elements = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return set_part_of_storage(self, std::move(source), 0, c10::SymInt(elements), c10::SymInt(1));
}

at::Tensor as_strided(
    const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<c10::SymInt> offset) {
  return at::native::as_strided_tensorimpl(
      self,
      C10_AS_INTARRAYREF_SLOW(size),
      C10_AS_INTARRAYREF_SLOW(stride),
      offset ? std::optional<int64_t>(offset->expect_int()) : std::nullopt);
}

at::Tensor view(const at::Tensor& self, c10::SymIntArrayRef size) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

at::Tensor reshape_alias(const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}

at::Tensor unfold(const at::Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return at::native::unfold(self, dimension, size, step);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  return cpu_alias(self).item();
}

void record_stream(at::Tensor&, c10::Stream) {}

// ---------------------------------------------------------------- every other operation: on CPU aliases

// Operations that take index tensors from the CPU for a tensor on the device, as on every accelerator.
const std::unordered_set<std::string> kCpuIndicesAllowed = {
    "aten::index",
    "aten::index_put",
    "aten::index_put_",
    "aten::_index_put_impl_",
    "aten::_unsafe_index",
    "aten::_unsafe_index_put",
};

struct Devices {
  bool npu = false;
  bool cpu = false; // a CPU tensor with dimensions: one without is a scalar, which every device takes
  void see(const at::Tensor& tensor) {
    if (tensor.defined()) {
      npu = npu || on_device(tensor);
      cpu = cpu || (!on_device(tensor) && tensor.dim() > 0);
    }
  }
};

template <typename Visitor>
void each_tensor(const c10::IValue& value, Visitor&& visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      visit(tensor);
    }
  } else if (value.isOptionalTensorList()) {
    for (const auto& tensor : value.toOptionalTensorVector()) {
      if (tensor) {
        visit(*tensor);
      }
    }
  }
}

void check_devices(const std::string& name, const std::vector<c10::IValue>& arguments) {
  const bool indexing = kCpuIndicesAllowed.count(name) != 0;
  Devices devices;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (indexing && arguments[i].isOptionalTensorList()) {
      continue; // the indices; their device is checked below
    }
    each_tensor(arguments[i], [&](const at::Tensor& tensor) { devices.see(tensor); });
  }
  TORCH_CHECK(
      !(devices.npu && devices.cpu),
      "Expected all tensors to be on the same device, but found at least two devices, npu:0 and cpu! (",
      name,
      ")");
  if (indexing) {
    const bool self_on_device = on_device(arguments[0].toTensor());
    each_tensor(arguments[1], [&](const at::Tensor& index) {
      TORCH_CHECK(
          self_on_device || !on_device(index),
          "indices should be either on cpu or on the same device as the indexed tensor (cpu)");
    });
  }
}

c10::IValue aliased(const c10::IValue& value) {
  if (value.isTensor()) {
    return cpu_alias(value.toTensor());
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      list.push_back(cpu_alias(tensor));
    }
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor ? std::optional<at::Tensor>(cpu_alias(*tensor)) : std::nullopt);
    }
    return list;
  }
  if (value.isDevice() && value.toDevice().type() == kNpu) {
    return c10::Device(at::kCPU);
  }
  return value;
}

// The argument that a result is written into, as the schema's alias annotation says; null when the result is new.
const at::Tensor* written_argument(
    const c10::FunctionSchema& schema, const c10::AliasInfo* result, const std::vector<c10::IValue>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (alias != nullptr && *alias == *result && arguments[i].isTensor() && arguments[i].toTensor().defined()) {
      return &arguments[i].toTensor();
    }
  }
  return nullptr;
}

c10::IValue on_device_again(
    const c10::OperatorHandle& op,
    const c10::Argument& declared,
    const c10::IValue& value,
    const std::vector<c10::IValue>& arguments) {
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      list.push_back(to_device(tensor));
    }
    return list;
  }
  if (!value.isTensor() || !value.toTensor().defined()) {
    return value;
  }
  const at::Tensor& result = value.toTensor();
  const auto* alias = declared.alias_info();
  if (alias == nullptr) {
    return to_device(result);
  }
  TORCH_CHECK(alias->isWrite(), "npu_device: the view operation ", op.schema().name(), " needs a kernel of its own");
  const at::Tensor* written = written_argument(op.schema(), alias, arguments);
  TORCH_CHECK(written != nullptr, "npu_device: no argument matches the result of ", op.schema().name());
  // An operation that resized its output has moved the alias to other memory.
  if (written->sizes() != result.sizes() || written->storage().data() != result.storage().data()) {
    copy_from_and_resize(result, *written);
  }
  return *written;
}

void on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const size_t count = schema.arguments().size();
  const std::vector<c10::IValue> arguments(stack->end() - static_cast<long>(count), stack->end());
  check_devices(schema.name(), arguments);
  for (size_t i = 0; i < count; ++i) {
    (*stack)[stack->size() - count + i] = aliased(arguments[i]);
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  const size_t results = schema.returns().size();
  for (size_t i = 0; i < results; ++i) {
    auto& value = (*stack)[stack->size() - results + i];
    value = on_device_again(op, schema.returns()[i], value, arguments);
  }
}

} // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("resize_", &resize_);
  library.impl("set_.source_Storage", &set_whole_storage);
  library.impl("set_.source_Storage_storage_offset", &set_part_of_storage);
  library.impl("as_strided", &as_strided);
  library.impl("view", &view);
  library.impl("_reshape_alias", &reshape_alias);
  library.impl("unfold", &unfold);
  library.impl("_local_scalar_dense", &local_scalar_dense);
  library.impl("record_stream", &record_stream);
}

TORCH_LIBRARY(poolparity_npu, library) {
  library.def("alias(Tensor self) -> Tensor");
}

TORCH_LIBRARY_IMPL(poolparity_npu, PrivateUse1, library) {
  library.impl("alias", &cpu_alias);
}

TORCH_LIBRARY_IMPL(poolparity_npu, CPU, library) {
  library.impl("alias", &cpu_alias);
}
