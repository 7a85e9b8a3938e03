import { promisify } from 'node:util';
import * as zlib from 'node:zlib';

const brotli = promisify(zlib.brotliCompress) as (body: Buffer, options: zlib.BrotliOptions) => Promise<Buffer>;
const { constants } = zlib;

/** What an unknown compressor is given: JSON that every brotli quality encodes to another length. */
export const PROBE_BODY = JSON.stringify(
  Array.from({ length: 150 }, (_, id) => ({
    id,
    callsign: `FLT${(id * 7919) % 9973}`,
    departure: `ED${String.fromCharCode(65 + (id % 26))}F`,
    altitude: (id * 2_654_435_761) % 41_000,
  })),
);

/**
 * The brotli quality that a compressor used for {@link PROBE_BODY}, told by the length of what it made: the encoder is
 * deterministic, and unlike the time it took, the length does not depend on how busy the machine is.
 */
export async function brotliQualityOf(encoded: Buffer): Promise<number> {
  const body = Buffer.from(PROBE_BODY);
  let nearest = 0;
  let distance = Number.POSITIVE_INFINITY;
  for (let quality = 0; quality <= 11; quality++) {
    for (const mode of [constants.BROTLI_MODE_GENERIC, constants.BROTLI_MODE_TEXT]) {
      const params = { [constants.BROTLI_PARAM_QUALITY]: quality, [constants.BROTLI_PARAM_MODE]: mode };
      const { byteLength } = await brotli(body, { params });
      const off = Math.abs(byteLength - encoded.byteLength);
      if (off < distance) [nearest, distance] = [quality, off];
    }
  }
  return nearest;
}
