"""Every figure that can be reproduced, by name."""

from gradrank.reproduce.covariance.correlation import CORRELATION
from gradrank.reproduce.covariance.explosion import EXPLOSION
from gradrank.reproduce.covariance.gradient import GRADIENT
from gradrank.reproduce.low_rank.beta_table import BETA_TABLE
from gradrank.reproduce.low_rank.fig1 import FIG1
from gradrank.reproduce.low_rank.fig2 import FIG2
from gradrank.reproduce.low_rank.fig3 import FIG3
from gradrank.reproduce.low_rank.fig4 import FIG4
from gradrank.reproduce.low_rank.fig5 import FIG5
from gradrank.reproduce.low_rank.fig6 import FIG6
from gradrank.reproduce.low_rank.fig7 import FIG7
from gradrank.reproduce.low_rank.fig8 import fig8
from gradrank.reproduce.low_rank.regularisers import REGULARISERS
from gradrank.reproduce.low_rank.scaling_laws import SCALING_LAWS
from gradrank.reproduce.onestep.alignment import ALIGNMENT
from gradrank.reproduce.onestep.curves import CURVES
from gradrank.reproduce.onestep.grid import GRID
from gradrank.reproduce.onestep.spiked_data import SPIKED_DATA
from gradrank.reproduce.onestep.spikes import SPIKES
from gradrank.reproduce.symmetry.linear import LINEAR
from gradrank.reproduce.symmetry.preserved import PRESERVED
from gradrank.reproduce.symmetry.subspace import SUBSPACE

LOW_RANK_GRADIENTS = (FIG1, FIG2, FIG3, FIG4, FIG5, FIG6, FIG7, fig8(), BETA_TABLE, SCALING_LAWS, REGULARISERS)
ONE_STEP = (ALIGNMENT, GRID, CURVES, SPIKES, SPIKED_DATA)
COVARIANCE = (CORRELATION, EXPLOSION, GRADIENT)
SYMMETRY = (PRESERVED, LINEAR, SUBSPACE)
CATALOGUE = {one.name: one for one in (*LOW_RANK_GRADIENTS, *ONE_STEP, *COVARIANCE, *SYMMETRY)}
