/* cuda/driver/pci.h: which GPU a PE will take. */
#ifndef WEFTI_CUDA_DRIVER_PCI_H
#define WEFTI_CUDA_DRIVER_PCI_H

#include "cuda/driver/driver.h"
#include "weft/device.h"

int wefti_cuda_find_pci(const weft_device_config *config, char *text, int bytes); /* see device/device.h */

#endif
