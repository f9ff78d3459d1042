/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of MPI that begin nothing and complete nothing that ticks have to know of. If threads call MPI by turns,
 * their ticks must know that one is in such a call. (On the thread itself the interrupted instruction says so.)
 *
 * Their parameters are integers and pointers, and so is what they return. So each is passed on as a function of twelve
 * words, which is more than any has: on x86-64 and aarch64 a function does not see arguments that it does not have.
 * Not among them are calls that only read what does not change, and those with other types (MPI_Wtime). mpi.h, which
 * declares them, is not included here.
 */
#include <stddef.h>

#include <contd/contd.h>

#include "base/atomic.h"
#include "progress/call.h"
#include "progress/next.h"

/* clang-format off */
#define CALLS(X) \
	X(Add_error_class) X(Add_error_code) X(Add_error_string) X(Alloc_mem) X(Attr_get) X(Buffer_attach) \
	X(Buffer_attach_c) X(Buffer_detach) X(Buffer_detach_c) X(Buffer_flush) X(Buffer_iflush) X(Cart_coords) \
	X(Cart_create) X(Cart_get) X(Cart_map) X(Cart_rank) X(Cart_shift) X(Cart_sub) X(Cartdim_get) X(Close_port) \
	X(Comm_accept) X(Comm_attach_buffer) X(Comm_attach_buffer_c) X(Comm_compare) X(Comm_connect) X(Comm_create) \
	X(Comm_create_from_group) X(Comm_create_group) X(Comm_create_keyval) X(Comm_detach_buffer) \
	X(Comm_detach_buffer_c) X(Comm_flush_buffer) X(Comm_free_keyval) X(Comm_get_attr) X(Comm_get_errhandler) \
	X(Comm_get_info) X(Comm_get_name) X(Comm_get_parent) X(Comm_group) X(Comm_iflush_buffer) X(Comm_join) \
	X(Comm_remote_group) X(Comm_remote_size) X(Comm_set_errhandler) X(Comm_set_info) X(Comm_set_name) \
	X(Comm_spawn) X(Comm_spawn_multiple) X(Comm_split) X(Comm_split_type) X(Comm_test_inter) X(Dims_create) \
	X(Dist_graph_create) X(Dist_graph_create_adjacent) X(Dist_graph_neighbors) X(Dist_graph_neighbors_count) \
	X(Errhandler_free) X(Errhandler_get) X(Errhandler_set) X(Error_class) X(Error_string) X(File_close) \
	X(File_delete) X(File_get_amode) X(File_get_atomicity) X(File_get_byte_offset) X(File_get_errhandler) \
	X(File_get_group) X(File_get_info) X(File_get_position) X(File_get_position_shared) X(File_get_size) \
	X(File_get_type_extent) X(File_get_type_extent_c) X(File_get_view) X(File_open) X(File_preallocate) \
	X(File_read) X(File_read_all) X(File_read_all_begin) X(File_read_all_begin_c) X(File_read_all_c) \
	X(File_read_all_end) X(File_read_at) X(File_read_at_all) X(File_read_at_all_begin) X(File_read_at_all_begin_c) \
	X(File_read_at_all_c) X(File_read_at_all_end) X(File_read_at_c) X(File_read_c) X(File_read_ordered) \
	X(File_read_ordered_begin) X(File_read_ordered_begin_c) X(File_read_ordered_c) X(File_read_ordered_end) \
	X(File_read_shared) X(File_read_shared_c) X(File_seek) X(File_seek_shared) X(File_set_atomicity) \
	X(File_set_errhandler) X(File_set_info) X(File_set_size) X(File_set_view) X(File_sync) X(File_write) \
	X(File_write_all) X(File_write_all_begin) X(File_write_all_begin_c) X(File_write_all_c) X(File_write_all_end) \
	X(File_write_at) X(File_write_at_all) X(File_write_at_all_begin) X(File_write_at_all_begin_c) \
	X(File_write_at_all_c) X(File_write_at_all_end) X(File_write_at_c) X(File_write_c) X(File_write_ordered) \
	X(File_write_ordered_begin) X(File_write_ordered_begin_c) X(File_write_ordered_c) X(File_write_ordered_end) \
	X(File_write_shared) X(File_write_shared_c) X(Free_mem) X(Get_elements) X(Get_elements_c) X(Get_elements_x) \
	X(Get_hw_resource_info) X(Graph_create) X(Graph_get) X(Graph_map) X(Graph_neighbors) X(Graph_neighbors_count) \
	X(Graphdims_get) X(Group_compare) X(Group_difference) X(Group_excl) X(Group_free) X(Group_from_session_pset) \
	X(Group_incl) X(Group_intersection) X(Group_range_excl) X(Group_range_incl) X(Group_rank) X(Group_size) \
	X(Group_translate_ranks) X(Group_union) X(Info_create) X(Info_create_env) X(Info_delete) X(Info_dup) \
	X(Info_free) X(Info_get) X(Info_get_nkeys) X(Info_get_nthkey) X(Info_get_string) X(Info_get_valuelen) \
	X(Info_set) X(Intercomm_create) X(Intercomm_create_from_groups) X(Intercomm_merge) X(Keyval_create) \
	X(Keyval_free) X(Lookup_name) X(Op_commutative) X(Op_create) X(Op_create_c) X(Op_free) X(Open_port) X(Pack) \
	X(Pack_c) X(Pack_external) X(Pack_external_c) X(Pack_external_size) X(Pack_external_size_c) X(Pack_size) \
	X(Pack_size_c) X(Parrived) X(Publish_name) X(Remove_error_class) X(Remove_error_code) X(Remove_error_string) \
	X(Request_get_status_all) X(Request_get_status_any) X(Request_get_status_some) X(Session_attach_buffer) \
	X(Session_attach_buffer_c) X(Session_call_errhandler) X(Session_detach_buffer) X(Session_detach_buffer_c) \
	X(Session_finalize) X(Session_flush_buffer) X(Session_get_errhandler) X(Session_get_info) \
	X(Session_get_nth_pset) X(Session_get_num_psets) X(Session_get_pset_info) X(Session_iflush_buffer) \
	X(Session_init) X(Session_set_errhandler) X(Session_set_info) X(Status_set_cancelled) X(Status_set_elements) \
	X(Status_set_elements_x) X(Status_set_error) X(Status_set_source) X(Status_set_tag) X(T_category_changed) \
	X(T_category_get_categories) X(T_category_get_cvars) X(T_category_get_events) X(T_category_get_index) \
	X(T_category_get_info) X(T_category_get_num) X(T_category_get_num_events) X(T_category_get_pvars) \
	X(T_cvar_get_index) X(T_cvar_get_info) X(T_cvar_get_num) X(T_cvar_handle_alloc) X(T_cvar_handle_free) \
	X(T_cvar_read) X(T_cvar_write) X(T_enum_get_info) X(T_enum_get_item) X(T_event_callback_get_info) \
	X(T_event_callback_set_info) X(T_event_copy) X(T_event_get_index) X(T_event_get_info) X(T_event_get_num) \
	X(T_event_get_source) X(T_event_get_timestamp) X(T_event_handle_alloc) X(T_event_handle_free) \
	X(T_event_handle_get_info) X(T_event_handle_set_info) X(T_event_read) X(T_event_set_dropped_handler) \
	X(T_finalize) X(T_init_thread) X(T_pvar_get_index) X(T_pvar_get_info) X(T_pvar_get_num) X(T_pvar_handle_alloc) \
	X(T_pvar_handle_free) X(T_pvar_read) X(T_pvar_readreset) X(T_pvar_reset) X(T_pvar_session_create) \
	X(T_pvar_session_free) X(T_pvar_start) X(T_pvar_stop) X(T_pvar_write) X(T_source_get_info) X(T_source_get_num) \
	X(T_source_get_timestamp) X(Test_cancelled) X(Topo_test) X(Type_commit) X(Type_contiguous) \
	X(Type_contiguous_c) X(Type_create_darray) X(Type_create_darray_c) X(Type_create_f90_complex) \
	X(Type_create_f90_integer) X(Type_create_f90_real) X(Type_create_hindexed) X(Type_create_hindexed_block) \
	X(Type_create_hindexed_block_c) X(Type_create_hindexed_c) X(Type_create_hvector) X(Type_create_hvector_c) \
	X(Type_create_indexed_block) X(Type_create_indexed_block_c) X(Type_create_keyval) X(Type_create_resized) \
	X(Type_create_resized_c) X(Type_create_struct) X(Type_create_struct_c) X(Type_create_subarray) \
	X(Type_create_subarray_c) X(Type_extent) X(Type_free_keyval) X(Type_get_attr) X(Type_get_contents) \
	X(Type_get_contents_c) X(Type_get_envelope) X(Type_get_envelope_c) X(Type_get_extent) X(Type_get_extent_c) \
	X(Type_get_extent_x) X(Type_get_name) X(Type_get_true_extent) X(Type_get_true_extent_c) \
	X(Type_get_true_extent_x) X(Type_get_value_index) X(Type_hindexed) X(Type_hvector) X(Type_indexed) \
	X(Type_indexed_c) X(Type_lb) X(Type_match_size) X(Type_set_name) X(Type_size) X(Type_size_c) X(Type_size_x) \
	X(Type_struct) X(Type_ub) X(Type_vector) X(Type_vector_c) X(Unpack) X(Unpack_c) X(Unpack_external) \
	X(Unpack_external_c) X(Unpublish_name) X(Win_attach) X(Win_create_keyval) X(Win_detach) X(Win_free_keyval) \
	X(Win_get_attr) X(Win_get_errhandler) X(Win_get_group) X(Win_get_info) X(Win_get_name) X(Win_set_errhandler) \
	X(Win_set_info) X(Win_set_name) X(Win_shared_query) X(Win_shared_query_c) X(Win_test)

#define CALLS_X(X) \
	X(Allreduce_enqueue) X(Allreduce_enqueue_c) X(Comm_ack_failed) X(Comm_agree) X(Comm_failure_ack) \
	X(Comm_failure_get_acked) X(Comm_get_failed) X(Comm_get_stream) X(Comm_iagree) X(Comm_is_revoked) \
	X(Comm_revoke) X(Comm_shrink) X(Comm_test_threadcomm) X(Delete_error_class) X(Delete_error_code) \
	X(Delete_error_string) X(GPU_query_support) X(Grequest_class_allocate) X(Grequest_class_create) \
	X(Grequest_start) X(Info_set_hex) X(Irecv_enqueue) X(Irecv_enqueue_c) X(Isend_enqueue) X(Isend_enqueue_c) \
	X(Query_cuda_support) X(Query_hip_support) X(Query_ze_support) X(Recv_enqueue) X(Recv_enqueue_c) \
	X(Send_enqueue) X(Send_enqueue_c) X(Start_progress_thread) X(Stop_progress_thread) X(Stream_comm_create) \
	X(Stream_comm_create_multiplex) X(Stream_create) X(Stream_free) X(Stream_irecv) X(Stream_irecv_c) \
	X(Stream_isend) X(Stream_isend_c) X(Stream_progress) X(Stream_recv) X(Stream_recv_c) X(Stream_send) \
	X(Stream_send_c) X(Threadcomm_finish) X(Threadcomm_free) X(Threadcomm_init) X(Threadcomm_start) X(Type_iov) \
	X(Type_iov_len) X(Wait_enqueue) X(Waitall_enqueue)
/* clang-format on */

#define WORDS long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l
#define THESE a, b, c, d, e, f, g, h, i, j, k, l
#define NO_SUCH_CALL 16 /* an error; this MPI does not have it, and who has called it has not been linked with it */

typedef long function(WORDS);

static __attribute__((noinline)) long pass_on(struct contd__next *found, WORDS)
{
	struct contd__mark mark;
	enum contd__entered how;
	function *next;
	long result;

	if (!contd__load(&found->found))
		contd__next_find(found);
	next = (function *)contd__load(&found->found);
	if (!next)
		return NO_SUCH_CALL;
	how = contd__call_begin(CONTD__FRAME, &mark);
	result = next(THESE);
	contd__call_end(how, &mark);
	return result;
}

#define NAMES(prefix, name) \
	CONTD_API function prefix##_##name; \
	CONTD_API function P##prefix##_##name; \
	long prefix##_##name(WORDS) \
	{ \
		return P##prefix##_##name(THESE); \
	} \
	long P##prefix##_##name(WORDS) \
	{ \
		static struct contd__next found = {"P" #prefix "_" #name, NULL}; \
\
		return pass_on(&found, THESE); \
	}
/*
 * An error handler of the program's. MPI 3 has removed the call, and mpi.h need not declare it; libraries have it
 * still, and MPICH 4.2 does not make it by MPI_Comm_create_errhandler, which wrappers.c stands in front of.
 */
CONTD_API function MPI_Errhandler_create;
CONTD_API function PMPI_Errhandler_create;
long MPI_Errhandler_create(WORDS)
{
	return PMPI_Errhandler_create(THESE);
}
long PMPI_Errhandler_create(WORDS)
{
	static struct contd__next found = {"PMPI_Errhandler_create", NULL};

	contd__store(&contd__progress.user_code, 1);
	return pass_on(&found, THESE);
}

/*
 * Fortran's calls that MPI's libraries for Fortran do not make by those in C, and that call back functions of the
 * program's: the one that deletes the attribute before.
 */
#define NAME_FORTRAN(name) \
	CONTD_API function name; \
	long name(WORDS) \
	{ \
		static struct contd__next found = {#name, NULL}; \
\
		if (!contd__load(&found.found)) \
			contd__next_find_fortran(&found); \
		return pass_on(&found, THESE); \
	}
#define NAMES_FORTRAN(name) \
	NAME_FORTRAN(mpi_##name) \
	NAME_FORTRAN(mpi_##name##_) \
	NAME_FORTRAN(mpi_##name##__) \
	NAME_FORTRAN(mpi_##name##_f08_) \
	NAME_FORTRAN(pmpi_##name) \
	NAME_FORTRAN(pmpi_##name##_) \
	NAME_FORTRAN(pmpi_##name##__) \
	NAME_FORTRAN(pmpi_##name##_f08_) \
	NAME_FORTRAN(pmpir_##name##_f08_)
NAMES_FORTRAN(attr_put)
NAMES_FORTRAN(comm_set_attr)
NAMES_FORTRAN(type_set_attr)
NAMES_FORTRAN(win_set_attr)

#define NAMES_MPI(name) NAMES(MPI, name)
#define NAMES_MPIX(name) NAMES(MPIX, name)
CALLS(NAMES_MPI)
CALLS_X(NAMES_MPIX)
