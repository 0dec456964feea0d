import { type Clock, createLimiter, type Limiter } from 'diana-limiter'

export interface WrongTokens {
  readonly compared: number
  readonly delayed: number
}

/** Bounds how often a wrong token may be tried. */
export interface Guesses {
  /** Compares a token by `isRight` unless this address has to wait; returns how long if it has. */
  try(address: string, isRight: () => boolean): { readonly right: boolean; readonly retryAfterMs: number }
  /** Tokens so far that were compared and wrong, and tokens that were not compared because too many had been wrong. */
  counts(): WrongTokens
  close(): Promise<void>
}

const perAddress = '10/m'
const overall = '60/m'
const whileBusy = '1/m'

/**
 * Creates the bounds of guesses: an address has ten tries at once and ten a minute. While all addresses together try more often
 * than once a second, each has one a minute: a client with the token gets in at the first try, for any number of other guesses.
 */
export async function createGuesses(clock?: Clock): Promise<Guesses> {
  const rule = { match: 'none', algorithm: 'token-bucket' } as const
  const limiter = await createLimiter({
    rules: [
      { ...rule, id: 'address', by: 'ip', limit: perAddress },
      { ...rule, id: 'overall', limit: overall },
      { ...rule, id: 'while-busy', by: 'ip', limit: whileBusy },
    ],
    maxKeys: 200_000,
    clock,
  })
  let compared = 0
  let delayed = 0
  return {
    try(address, isRight) {
      const own = take(limiter, 'address', address)
      const all = take(limiter, 'overall', address)
      const one = take(limiter, 'while-busy', address)
      const retryAfterMs = own.allowed && all.allowed ? 0 : (own.allowed ? one : own).retryAfterMs
      // a try that may not be made is not counted, and neither is a right one
      const right = retryAfterMs === 0 && isRight()
      if (right || retryAfterMs > 0) for (const taken of [own, all, one]) taken.settle(0)
      if (retryAfterMs > 0) delayed++
      else if (!right) compared++
      return { right, retryAfterMs }
    },
    counts: () => ({ compared, delayed }),
    close: () => limiter.close(),
  }
}

function take(limiter: Limiter, rule: string, ip: string) {
  const verdict = limiter.decide({ method: 'POST', path: '/', ip }, { rule, only: true })
  if (verdict instanceof Promise) throw new Error('these rules are counted in this process and never wait')
  return verdict
}
