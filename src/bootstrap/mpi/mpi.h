/* bootstrap/mpi/mpi.h: the MPI of the program. */
#ifndef WEFTI_BOOTSTRAP_MPI_MPI_H
#define WEFTI_BOOTSTRAP_MPI_MPI_H

/* Whether the program has an MPI that is initialised and not finalised: the launcher's PMI is then its own. */
int wefti_mpi_is_up(void);

#endif
