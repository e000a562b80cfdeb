/* A libfabric that shows the interfaces rail0 and rail1 as one NIC, mlx5_0, and tells its ports apart by nothing but
 * addresses, as the provider of verbs does with a NIC that has two ports: loaded in place of libfabric.so.1 by tests.
 * All else is the provider's that is there. */
#include "provider/library.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdlib.h>
#include <string.h>

#define NIC "mlx5_0"

static struct fi_ops_fabric fabric_ops; /* the provider's, which are the same each time, with one of ours */
static struct fi_ops_domain domain_ops;
static int (*open_real_domain)(struct fid_fabric *, struct fi_info *, struct fid_domain **, void *);
static int (*open_real_endpoint)(struct fid_domain *, struct fi_info *, struct fid_ep **, void *);

static void rename_domain(struct fi_info *info, const char *name)
{
    free(info->domain_attr->name);
    info->domain_attr->name = name != NULL ? strdup(name) : NULL;
    expect(name == NULL || info->domain_attr->name != NULL, "no memory");
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
               struct fi_info **info)
{
    load_once();
    struct fi_info *asked = real.dupinfo(hints);
    expect(asked != NULL, "no memory");
    if (asked->domain_attr->name != NULL && strcmp(asked->domain_attr->name, NIC) == 0) {
        rename_domain(asked, NULL);
    }
    const int error = real.getinfo(version, node, service, flags, asked, info);
    real.freeinfo(asked);
    for (struct fi_info *i = error == 0 ? *info : NULL; i != NULL; i = i->next) {
        if (strcmp(i->domain_attr->name, "rail0") == 0 || strcmp(i->domain_attr->name, "rail1") == 0) {
            rename_domain(i, NIC);
        }
    }
    return error;
}

/* The provider's own name of what is to be opened: the address alone says which. */
static struct fi_info *restore(const struct fi_info *info)
{
    struct ifaddrs *all;
    struct fi_info *restored = real.dupinfo(info);
    expect(restored != NULL && getifaddrs(&all) == 0, "no memory");
    for (struct ifaddrs *one = all; one != NULL && strcmp(restored->domain_attr->name, NIC) == 0; one = one->ifa_next) {
        const struct sockaddr_in *its = (const struct sockaddr_in *)(const void *)one->ifa_addr;
        const struct sockaddr_in *wanted = info->src_addr;
        if (its != NULL && its->sin_family == AF_INET && wanted->sin_family == AF_INET &&
            its->sin_addr.s_addr == wanted->sin_addr.s_addr) {
            rename_domain(restored, one->ifa_name);
        }
    }
    freeifaddrs(all);
    return restored;
}

static int open_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out, void *context)
{
    struct fi_info *restored = restore(info);
    const int error = open_real_endpoint(domain, restored, out, context);
    real.freeinfo(restored);
    return error;
}

static int open_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out, void *context)
{
    struct fi_info *restored = restore(info);
    const int error = open_real_domain(fabric, restored, out, context);
    real.freeinfo(restored);
    if (error == 0) {
        open_real_endpoint = (*out)->ops->endpoint;
        domain_ops = *(*out)->ops;
        domain_ops.endpoint = open_endpoint;
        (*out)->ops = &domain_ops;
    }
    return error;
}

int fi_fabric(struct fi_fabric_attr *attributes, struct fid_fabric **out, void *context)
{
    load_once();
    const int error = real.fabric(attributes, out, context);
    if (error == 0 && (*out)->ops->domain != open_domain) { /* one that is open already may be given again */
        open_real_domain = (*out)->ops->domain;
        fabric_ops = *(*out)->ops;
        fabric_ops.domain = open_domain;
        (*out)->ops = &fabric_ops;
    }
    return error;
}
