import type { Transform } from 'node:stream'
import { constants, createBrotliCompress, createGzip } from 'node:zlib'
import type { Encoding } from '../../settings/compression-settings.ts'

/** A stream that compresses what is written to it. */
export interface Compressor extends Transform {
  /** Has all that was written come out. */
  flush(): void
}

/** Each takes up to a mebibyte while its answer is under way. */
const mostAtATime = 128

const create: Readonly<Record<Encoding, (length: number | undefined) => Compressor>> = {
  gzip: () => createGzip({ level: 5 }),
  br: length =>
    createBrotliCompress({
      params: {
        [constants.BROTLI_PARAM_QUALITY]: 4,
        // a window of 256 KiB: the usual one takes several mebibytes
        [constants.BROTLI_PARAM_LGWIN]: 18,
        ...(length === undefined ? {} : { [constants.BROTLI_PARAM_SIZE_HINT]: Math.min(length, 2 ** 30) }),
      },
    }),
}

let open = 0

/** True if one more answer may be compressed; beyond a bound, answers are sent as they are. */
export function hasCompressor(): boolean {
  return open < mostAtATime
}

/** Returns a compressor that counts until it is closed. */
export function takeCompressor(encoding: Encoding, length: number | undefined): Compressor {
  const compressor = create[encoding](length)
  open++
  compressor.once('close', () => open--)
  return compressor
}
