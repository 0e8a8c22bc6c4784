/* SPDX-License-Identifier: GPL-2.0 */
/*
 * timing.h - how long things take on the air. Integer nanoseconds, no state: also compiled by lab/tests. IEEE Std
 * 802.11-2020: OFDM PHY at 5 GHz, table 17-21 (slot, SIFS, preamble), 17.3.2.4 (TXTIME), 19.4.3 (HT), 21.4.3 (VHT).
 */
#ifndef MEDIUM_TIMING_H
#define MEDIUM_TIMING_H

#define MEDIUM_SLOT_NS		9000u
#define MEDIUM_SIFS_NS		16000u
#define MEDIUM_BASIC_KBPS	6000u	/* beacons, management, group frames */
#define MEDIUM_CONTROL_KBPS	24000u	/* RTS, CTS, ACK, block ACK */
#define MEDIUM_RTS_BYTES	20u
#define MEDIUM_CTS_BYTES	14u
#define MEDIUM_ACK_BYTES	14u
#define MEDIUM_BA_BYTES		32u	/* compressed block ACK, 64-bit bitmap */
#define MEDIUM_DELIMITER_BYTES	4u	/* before each MPDU of an A-MPDU, which is padded to 4 */
#define MEDIUM_FCS_BYTES	4u

/* One MCS of HT or VHT. kbps is the PHY rate that these four give. */
struct medium_rate {
	unsigned int kbps;
	unsigned char mcs, nss, width_mhz;
	_Bool short_gi, legacy;
};

/* data subcarriers at 20, 40, 80 MHz (tables 21-29 .. 21-45) */
static inline unsigned int medium_subcarriers(unsigned int width_mhz)
{
	return width_mhz >= 80 ? 234 : width_mhz >= 40 ? 108 : 52;
}

/* PHY rate of an MCS in kbit/s; long symbols last 4 us, short-GI ones 3.6 us */
static inline unsigned int medium_mcs_kbps(unsigned int width_mhz, unsigned int nss, unsigned int mcs, _Bool short_gi)
{
	/* coded bits per subcarrier times code rate, in twelfths: BPSK 1/2 .. 256-QAM 5/6 */
	static const unsigned char twelfths[10] = { 6, 12, 18, 24, 36, 48, 54, 60, 72, 80 };
	unsigned int bits = medium_subcarriers(width_mhz) * twelfths[mcs > 9 ? 9 : mcs] / 12 * nss;

	return short_gi ? bits * 2500 / 9 : bits * 250;
}

/* The fastest MCS not above target_kbps in this width (MCS 0 where even that is faster). max_mcs: 7 for HT, 9 for
 * VHT */
static inline struct medium_rate medium_rate_for(unsigned int target_kbps, unsigned int width_mhz, unsigned int max_mcs)
{
	struct medium_rate best = { medium_mcs_kbps(width_mhz, 1, 0, 0), 0, 1, (unsigned char)width_mhz, 0, 0 };
	unsigned int nss, mcs, gi;

	for (nss = 1; nss <= 2; nss++)
		for (mcs = 0; mcs <= max_mcs; mcs++)
			for (gi = 0; gi <= 1; gi++) {
				unsigned int kbps = medium_mcs_kbps(width_mhz, nss, mcs, gi);

				if (width_mhz < 40 && mcs == 9)
					continue;	/* not defined for 20 MHz with 1 or 2 streams */
				if (kbps <= target_kbps && kbps >= best.kbps)
					best = (struct medium_rate){ kbps, (unsigned char)mcs, (unsigned char)nss,
								     (unsigned char)width_mhz, gi, 0 };
			}
	return best;
}

/* OFDM PPDU of one frame at a legacy rate: 20 us preamble and SIGNAL, then 4 us symbols; 16 service and 6 tail bits */
static inline unsigned int medium_legacy_ns(unsigned int kbps, unsigned int bytes)
{
	unsigned int bits_per_symbol = kbps / 250;

	return 20000 + (22 + 8 * bytes + bits_per_symbol - 1) / bits_per_symbol * 4000;
}

/* HT or VHT PPDU: preamble 36 us plus 4 us for each stream's training field, then whole symbols */
static inline unsigned long long medium_ppdu_ns(const struct medium_rate *rate, unsigned int bytes)
{
	unsigned int symbol_ns = rate->short_gi ? 3600 : 4000;
	unsigned int bits_per_symbol = rate->short_gi ? rate->kbps * 9 / 2500 : rate->kbps / 250;
	unsigned int symbols;

	if (rate->legacy)
		return medium_legacy_ns(rate->kbps, bytes);
	if (rate->short_gi)	/* kbps was rounded down */
		bits_per_symbol = (rate->kbps * 9 + 2499) / 2500;
	symbols = (22 + 8 * bytes + bits_per_symbol - 1) / bits_per_symbol;
	return 36000 + 4000 * rate->nss + (unsigned long long)symbols * symbol_ns;
}

/* what follows a PPDU that wants an answer */
static inline unsigned int medium_response_ns(_Bool block_ack)
{
	return MEDIUM_SIFS_NS + medium_legacy_ns(MEDIUM_CONTROL_KBPS, block_ack ? MEDIUM_BA_BYTES : MEDIUM_ACK_BYTES);
}

/* RTS, SIFS, CTS, SIFS before a protected PPDU */
static inline unsigned int medium_rts_cts_ns(void)
{
	return medium_legacy_ns(MEDIUM_CONTROL_KBPS, MEDIUM_RTS_BYTES) +
	       medium_legacy_ns(MEDIUM_CONTROL_KBPS, MEDIUM_CTS_BYTES) +
	       2 * MEDIUM_SIFS_NS;
}

#endif
