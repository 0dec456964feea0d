/** A rate in whole numbers: a token is `token` units, and `perMicro` units flow in each microsecond. */
export interface Rate {
  readonly token: number
  readonly perMicro: number
}

const EXACT = 2 ** 52

/**
 * The rate `count` per `periodUs` as a fraction of whole numbers, so that no fraction of a token is ever lost.
 * Where `tokens` of them would leave the exact integers of a double, the nearest smaller fraction that fits is taken:
 * never more than the rate asked for. Undefined when even that is zero.
 */
export function exactRate(count: number, periodUs: number, tokens: number): Rate | undefined {
  const divisor = greatestCommonDivisor(count, periodUs)
  const exact = { token: periodUs / divisor, perMicro: count / divisor }
  const largestToken = Math.floor(EXACT / Math.max(1, tokens))
  if (exact.token <= largestToken && exact.perMicro <= EXACT) return exact
  return nearestBelow(exact, largestToken)
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b)
}

/** A walk down the Stern–Brocot tree, whole runs at a time, keeping the best fraction that is not above the target. */
function nearestBelow({ token, perMicro }: Rate, largestToken: number): Rate | undefined {
  const top = BigInt(perMicro)
  const bottom = BigInt(token)
  const largest = BigInt(largestToken)
  let [lowTop, lowBottom, highTop, highBottom] = [0n, 1n, 1n, 0n]
  while (true) {
    // the longest step of the lower bound towards the upper one that stays below the target
    const gap = top * lowBottom - bottom * lowTop
    const slope = bottom * highTop - top * highBottom
    const up = slope === 0n ? (largest - lowBottom) / highBottom : gap / slope
    const steps = highBottom === 0n ? up : min(up, (largest - lowBottom) / highBottom)
    lowTop += steps * highTop
    lowBottom += steps * highBottom
    const rest = top * lowBottom - bottom * lowTop
    if (rest === 0n || lowBottom + highBottom > largest) break
    const down = min((bottom * highTop - top * highBottom - 1n) / rest, (largest - highBottom) / lowBottom)
    if (down === 0n && steps === 0n) break
    highTop += down * lowTop
    highBottom += down * lowBottom
  }
  return lowTop === 0n ? undefined : { token: Number(lowBottom), perMicro: Number(lowTop) }
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
