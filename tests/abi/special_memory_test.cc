// Memory that is not simply the program's: the null region, device memory, files, buffers that the
// library allocates; and domains that are made of others.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

constexpr std::size_t kPage = 4096;

class SpecialMemoryTest : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    mr_ = register_all(buffer_.data(), buffer_.size());
    qp_ = make_qp();
    peer_ = make_qp();
    connect(qp_, peer_);
  }
  std::uint64_t address(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t>(buffer_.data()) + offset;
  }
  // WRITE or READ between `local` and a remote range. Its status.
  ibv_wc_status transfer(ibv_wr_opcode opcode, ibv_sge local, std::uint64_t remote,
                         std::uint32_t rkey) {
    ibv_send_wr wr = send_wr(1, opcode, &local);
    wr.wr.rdma = {.remote_addr = remote, .rkey = rkey};
    EXPECT_EQ(post(qp_, wr), 0);
    return wait_for_completion().status;
  }

  alignas(8) std::array<char, 2 * kPage> buffer_{};
  ibv_mr* mr_ = nullptr;
  ibv_qp *qp_ = nullptr, *peer_ = nullptr;
};

// --- the null region

TEST_F(SpecialMemoryTest, TheNullRegionReadsAsZerosAndSwallowsWrites) {
  ibv_mr* null = ibv_alloc_null_mr(pd);
  ASSERT_NE(null, nullptr);
  EXPECT_EQ(null->length, SIZE_MAX);
  buffer_.fill('x');
  const ibv_sge anywhere{.addr = 0x123456, .length = 3000, .lkey = null->lkey};
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, anywhere, address(0), mr_->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(buffer_[0], 0);
  EXPECT_EQ(buffer_[2999], 0);
  EXPECT_EQ(buffer_[3000], 'x');
  EXPECT_EQ(transfer(IBV_WR_RDMA_READ, anywhere, address(0), mr_->rkey), IBV_WC_SUCCESS);

  // A list that keeps only the middle of what comes.
  ibv_sge list[] = {{.addr = 0, .length = 3004, .lkey = null->lkey},
                    sge_of(mr_, 0, 2),
                    {.addr = 0, .length = 100, .lkey = null->lkey}};
  ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_READ, list);
  wr.num_sge = 3;
  wr.wr.rdma = {.remote_addr = address(0), .rkey = mr_->rkey};
  ASSERT_EQ(post(qp_, wr), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(buffer_[1], 'x');
  EXPECT_EQ(buffer_[2], 0);
}

TEST_F(SpecialMemoryTest, TheNullRegionIsForLocalUseOnlyAndDoesNotChange) {
  ibv_mr* null = ibv_alloc_null_mr(pd);
  ASSERT_NE(null, nullptr);
  EXPECT_NE(verbs.rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0), 0);
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(mr_, 0, 8), 0, null->lkey), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(verbs.dealloc_pd(pd), EBUSY);
  EXPECT_EQ(verbs.dereg_mr(null), 0);
}

// --- device memory

TEST_F(SpecialMemoryTest, AGigabyteOfTheNullRegionIsSentByThePacket) {
  ibv_mr* null = ibv_alloc_null_mr(pd);
  ASSERT_NE(null, nullptr);
  const ibv_sge gigabyte{.addr = 0, .length = 1u << 30, .lkey = null->lkey};
  ibv_qp* datagrams = make_qp(IBV_QPT_UD);
  ready_ud(datagrams);
  ibv_ah_attr route = loopback_route();
  ibv_sge sge = gigabyte;
  ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge);
  wr.wr.ud = {
      .ah = verbs.create_ah(pd, &route), .remote_qpn = datagrams->qp_num, .remote_qkey = kQKey};
  EXPECT_EQ(post(datagrams, wr), EINVAL) << "longer than a packet";
  EXPECT_EQ(verbs.destroy_ah(wr.wr.ud.ah), 0);
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, gigabyte, 0, null->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(SpecialMemoryTest, DeviceMemoryIsCopiedRegisteredAndUsed) {
  ibv_alloc_dm_attr attr{.length = 1000, .log_align_req = 6, .comp_mask = 0};
  ibv_dm* dm = ibv_alloc_dm(context, &attr);
  ASSERT_NE(dm, nullptr);
  char text[] = "device.";
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 100, text, sizeof text), 0);
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 1000, text, 4), EFAULT);
  EXPECT_EQ(ibv_memcpy_from_dm(text, dm, UINT64_MAX, 2), EFAULT);

  const unsigned access = kAllAccess | IBV_ACCESS_ZERO_BASED;
  EXPECT_EQ(ibv_reg_dm_mr(pd, dm, 100, 900, kAllAccess), nullptr) << "must be zero-based";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_reg_dm_mr(pd, dm, 101, 900, access), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_mr* mr = ibv_reg_dm_mr(pd, dm, 100, 900, access);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_free_dm(dm), EBUSY);

  EXPECT_EQ(transfer(IBV_WR_RDMA_READ, sge_of(mr_, 0, sizeof text), 0, mr->rkey), IBV_WC_SUCCESS);
  EXPECT_STREQ(buffer_.data(), "device.");
  std::memcpy(buffer_.data(), "DEVICE", 6);
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(mr_, 0, 6), 1, mr->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_memcpy_from_dm(text, dm, 100, 8), 0);
  EXPECT_STREQ(text, "dDEVICE");

  const int fd = verbs.dm_export_dmabuf_fd(dm);
  ASSERT_GE(fd, 0);
  ibv_mr* same = verbs.reg_dmabuf_mr(pd, 0, 1000, 0, fd, kAllAccess);
  close(fd);
  ASSERT_NE(same, nullptr);
  EXPECT_EQ(transfer(IBV_WR_RDMA_READ, sge_of(mr_, 64, 6), 101, same->rkey), IBV_WC_SUCCESS);
  EXPECT_STREQ(buffer_.data() + 64, "DEVICE");

  EXPECT_EQ(verbs.dereg_mr(mr), 0);
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(SpecialMemoryTest, DeviceMemoryIsAccessedByWords) {
  ibv_alloc_dm_attr attr{.length = 64, .log_align_req = 0, .comp_mask = 0};
  ibv_dm* dm = ibv_alloc_dm(context, &attr);
  ASSERT_NE(dm, nullptr);
  struct Range {
    std::uint64_t offset;
    std::size_t length;
    int error;
  };
  char bytes[64] = {};
  for (const Range& range : {Range{1, 4, EINVAL}, Range{4, 3, EINVAL}, Range{2, 2, EINVAL},
                             Range{0, 64, 0}, Range{60, 4, 0}, Range{8, 0, 0}}) {
    EXPECT_EQ(ibv_memcpy_to_dm(dm, range.offset, bytes, range.length), range.error);
    EXPECT_EQ(ibv_memcpy_from_dm(bytes, dm, range.offset, range.length), range.error);
    errno = 0;
    ibv_mr* mr = ibv_reg_dm_mr(pd, dm, range.offset, range.length,
                               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
    EXPECT_EQ(mr == nullptr ? errno : 0, range.error) << range.offset << ' ' << range.length;
    EXPECT_TRUE(mr == nullptr || verbs.dereg_mr(mr) == 0);
  }
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(SpecialMemoryTest, DeviceMemoryIsLimited) {
  ibv_device_attr_ex device{};
  ASSERT_EQ(verbs_get_ctx_op(context, query_device_ex)
                ->query_device_ex(context, nullptr, &device, sizeof device),
            0);
  ASSERT_GT(device.max_dm_size, 0u);
  ibv_alloc_dm_attr attr{.length = device.max_dm_size + 1, .log_align_req = 0, .comp_mask = 0};
  EXPECT_EQ(ibv_alloc_dm(context, &attr), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  attr.length = device.max_dm_size;
  ibv_dm* all = ibv_alloc_dm(context, &attr);
  ASSERT_NE(all, nullptr);
  attr.length = 1;
  EXPECT_EQ(ibv_alloc_dm(context, &attr), nullptr);
  EXPECT_EQ(ibv_free_dm(all), 0);
  EXPECT_NE(ibv_alloc_dm(context, &attr), nullptr);
  for (const ibv_alloc_dm_attr bad : {ibv_alloc_dm_attr{0, 0, 0}, {8, 40, 0}, {8, 0, 1}}) {
    ibv_alloc_dm_attr copy = bad;
    EXPECT_EQ(ibv_alloc_dm(context, &copy), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
}

// --- files

TEST_F(SpecialMemoryTest, AFileIsRegisteredByItsDescriptor) {
  const int fd = memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, 3 * kPage), 0);
  ibv_mr* mr = verbs.reg_dmabuf_mr(pd, kPage + 16, 100, 0x70010, fd, kAllAccess);
  ASSERT_NE(mr, nullptr);
  std::memcpy(buffer_.data(), "to the file", 11);
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(mr_, 0, 11), 0x70010, mr->rkey), IBV_WC_SUCCESS);
  char text[12] = {};
  EXPECT_EQ(pread(fd, text, 11, kPage + 16), 11);
  EXPECT_STREQ(text, "to the file");
  ASSERT_EQ(ftruncate(fd, kPage), 0);  // the page is gone
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(mr_, 0, 11), 0x70010, mr->rkey),
            IBV_WC_REM_ACCESS_ERR);
  close(fd);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
}

TEST_F(SpecialMemoryTest, WhatIsNoMappableFileIsRefused) {
  const int fd = memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, kPage), 0);
  EXPECT_EQ(verbs.reg_dmabuf_mr(pd, 0, 64, 0, -1, 0), nullptr);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(verbs.reg_dmabuf_mr(pd, 0, kPage + 1, 0, fd, 0), nullptr) << "longer than the file";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(verbs.reg_dmabuf_mr(pd, 8, 64, 16, fd, 0), nullptr) << "another place in the page";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(verbs.reg_dmabuf_mr(pd, 0, 64, 0, fd, IBV_ACCESS_ON_DEMAND), nullptr);
  EXPECT_EQ(errno, EINVAL);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(verbs.reg_dmabuf_mr(pd, 0, 64, 0, ends[0], 0), nullptr);
  EXPECT_EQ(errno, ENODEV);
  for (const int open : {fd, ends[0], ends[1]}) close(open);
}

// --- registration by attributes, buffers, DMA handles

TEST_F(SpecialMemoryTest, RegistrationByAttributes) {
  NewerDMAHInit hint{.comp_mask = 1u << 0 | 1u << 2, .cpu_id = 0, .ph = 0, .tph_mem_type = 1};
  ibv_dmah* dmah = verbs.alloc_dmah(context, &hint);
  ASSERT_NE(dmah, nullptr);
  NewerMRInit attr{};
  attr.comp_mask = 1u << 1 | 1u << 0 | 1u << 4;  // addr, iova, dmah
  attr.addr = buffer_.data();
  attr.length = 64;
  attr.iova = 0x5000;
  attr.access = kAllAccess;
  attr.dmah = dmah;
  ibv_mr* mr = verbs.reg_mr_ex(pd, &attr);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(transfer(IBV_WR_RDMA_READ, sge_of(mr_, 64, 8), 0x5000, mr->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(verbs.dealloc_dmah(dmah), EBUSY);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
  attr.access |= IBV_ACCESS_ON_DEMAND;
  EXPECT_EQ(verbs.reg_mr_ex(pd, &attr), nullptr) << "a handle is for pinned memory";
  EXPECT_EQ(errno, EINVAL);
  attr.access = kAllAccess;
  EXPECT_EQ(verbs.dealloc_dmah(dmah), 0);

  attr.comp_mask = 1u << 0;
  EXPECT_EQ(verbs.reg_mr_ex(pd, &attr), nullptr) << "neither memory nor file";
  EXPECT_EQ(errno, EINVAL);
  attr.comp_mask = 1u << 1 | 1u << 2 | 1u << 3;
  EXPECT_EQ(verbs.reg_mr_ex(pd, &attr), nullptr) << "both";
  EXPECT_EQ(errno, EINVAL);
  hint.comp_mask = 1u << 9;
  EXPECT_EQ(verbs.alloc_dmah(context, &hint), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(SpecialMemoryTest, ABufferIsOrdinaryMemory) {
  ibv_buf* buf = nullptr;
  char* data = static_cast<char*>(verbs.alloc_buf(pd, 10000, &buf));
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % kPage, 0u);
  EXPECT_EQ(verbs.dealloc_pd(pd), EBUSY);
  EXPECT_EQ(verbs.reg_buf_mr(pd, buf, data + 1, 10000, kAllAccess), nullptr) << "beyond its end";
  EXPECT_EQ(errno, EINVAL);
  ibv_pd* other = verbs.alloc_pd(context);
  EXPECT_EQ(verbs.reg_buf_mr(other, buf, data, 100, kAllAccess), nullptr) << "of another domain";
  EXPECT_EQ(errno, EINVAL);
  ibv_mr* mr = verbs.reg_buf_mr(pd, buf, data + 100, 500, kAllAccess);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->addr, data + 100);
  std::memcpy(buffer_.data(), "buffer", 6);
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(mr_, 0, 6),
                     reinterpret_cast<std::uint64_t>(data + 100), mr->rkey),
            IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(data + 100, "buffer", 6), 0);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
  EXPECT_EQ(verbs.export_buf_dmabuf_fd(buf), -1);
  EXPECT_EQ(errno, ENODATA);

  NewerMRInit attr{};
  attr.comp_mask = 1u << 0 | 1u << 1 | 1u << 5;  // iova, addr, buf
  attr.addr = data;
  attr.length = 4096;
  attr.iova = 0x10000;
  attr.access = kAllAccess;
  attr.buf = buf;
  mr = verbs.reg_mr_ex(pd, &attr);
  ASSERT_NE(mr, nullptr);
  std::memcpy(buffer_.data(), "BUFFER", 6);
  EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, sge_of(mr_, 0, 6), 0x10000 + 100, mr->rkey),
            IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(data + 100, "BUFFER", 6), 0);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
  verbs.free_buf(buf);
  EXPECT_EQ(verbs.dealloc_pd(other), 0);
  buf = nullptr;
  EXPECT_EQ(verbs.alloc_buf(pd, 0, &buf), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// --- thread domains, parent domains

struct Allocations {
  int made = 0, freed = 0;
  bool use_default = false, fail = false;
};

void* allocate(ibv_pd*, void* context, std::size_t size, std::size_t alignment, std::uint64_t) {
  auto& allocations = *static_cast<Allocations*>(context);
  if (allocations.fail) return nullptr;
  if (allocations.use_default) return IBV_ALLOCATOR_USE_DEFAULT;
  ++allocations.made;
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void release(ibv_pd*, void* context, void* memory, std::uint64_t) {
  ++static_cast<Allocations*>(context)->freed;
  std::free(memory);
}

TEST_F(SpecialMemoryTest, AParentDomainIsAsGoodAsItsOwn) {
  ibv_td_init_attr none{};
  ibv_td* td = ibv_alloc_td(context, &none);
  ASSERT_NE(td, nullptr);
  ibv_parent_domain_init_attr attr{};
  attr.pd = pd;
  attr.td = td;
  ibv_pd* parent = ibv_alloc_parent_domain(context, &attr);
  ASSERT_NE(parent, nullptr);
  ibv_mr* mr = verbs.reg_mr(parent, buffer_.data(), 64, kAllAccess);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->pd, parent);
  EXPECT_EQ(transfer(IBV_WR_RDMA_READ, sge_of(mr_, 64, 8), address(0), mr->rkey), IBV_WC_SUCCESS)
      << "QPs of the domain reach its memory";
  ibv_qp_init_attr init = qp_attributes(IBV_QPT_RC);
  ibv_qp* qp = verbs.create_qp(parent, &init);
  ASSERT_NE(qp, nullptr);
  ibv_cq_init_attr_ex cq_attr{};
  cq_attr.cqe = 4;
  cq_attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  cq_attr.parent_domain = parent;
  ibv_cq_ex* in_domain = ibv_create_cq_ex(context, &cq_attr);
  ASSERT_NE(in_domain, nullptr);

  EXPECT_EQ(verbs.dealloc_pd(parent), EBUSY);
  EXPECT_EQ(verbs.dereg_mr(mr), 0);
  EXPECT_EQ(verbs.dealloc_pd(parent), EBUSY);
  EXPECT_EQ(verbs.destroy_qp(qp), 0);
  EXPECT_EQ(verbs.dealloc_pd(parent), EBUSY) << "the CQ is in it";
  EXPECT_EQ(verbs.destroy_cq(ibv_cq_ex_to_cq(in_domain)), 0);
  EXPECT_EQ(ibv_dealloc_td(td), EBUSY);
  EXPECT_EQ(verbs.dealloc_pd(parent), 0);
  EXPECT_EQ(ibv_dealloc_td(td), 0);
}

TEST_F(SpecialMemoryTest, AParentDomainKeepsItsDomain) {
  ibv_parent_domain_init_attr attr{};
  attr.pd = verbs.alloc_pd(context);
  ibv_pd* parent = ibv_alloc_parent_domain(context, &attr);
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(verbs.dealloc_pd(attr.pd), EBUSY);
  EXPECT_EQ(verbs.dealloc_pd(parent), 0);
  EXPECT_EQ(verbs.dealloc_pd(attr.pd), 0);
}

TEST_F(SpecialMemoryTest, AParentDomainNeedsWhatItIsMadeOf) {
  ibv_parent_domain_init_attr attr{};
  EXPECT_EQ(ibv_alloc_parent_domain(context, &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  attr.pd = pd;
  attr.comp_mask = 1u << 20;
  EXPECT_EQ(ibv_alloc_parent_domain(context, &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
  EXPECT_EQ(ibv_alloc_parent_domain(context, &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_td_init_attr bad{.comp_mask = 1};
  EXPECT_EQ(ibv_alloc_td(context, &bad), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(SpecialMemoryTest, BuffersComeFromTheParentDomainsAllocator) {
  Allocations allocations;
  ibv_parent_domain_init_attr attr{};
  attr.pd = pd;
  attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  attr.alloc = allocate;
  attr.free = release;
  attr.pd_context = &allocations;
  ibv_pd* parent = ibv_alloc_parent_domain(context, &attr);
  ASSERT_NE(parent, nullptr);
  ibv_buf* buf = nullptr;
  ASSERT_NE(verbs.alloc_buf(parent, 100, &buf), nullptr);
  EXPECT_EQ(allocations.made, 1);
  EXPECT_EQ(verbs.export_buf_dmabuf_fd(buf), -1);
  EXPECT_EQ(errno, ENODATA);
  verbs.free_buf(buf);
  EXPECT_EQ(allocations.freed, 1);
  allocations.use_default = true;
  ASSERT_NE(verbs.alloc_buf(parent, 100, &buf), nullptr);
  verbs.free_buf(buf);
  EXPECT_EQ(allocations.freed, 1);
  allocations.fail = true;
  EXPECT_EQ(verbs.alloc_buf(parent, 100, &buf), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

}  // namespace
}  // namespace verbena::test
