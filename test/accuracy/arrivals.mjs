import { seededRandom } from '../helpers/seeded-random.mjs'

/**
 * When one process offers its calls, in milliseconds from the start. `parts` are stretches of time, each with its rate;
 * `spread` is how the calls lie in them: evenly, at random (Poisson), or ten at once.
 */
export function* arrivals({ parts, spread, seed }) {
  const random = seededRandom(seed)
  const { size, gap } = spreads[spread](random)
  for (const { fromMs, toMs, perSecond } of parts) {
    const meanMs = (1000 / perSecond) * size
    for (let at = fromMs + meanMs * random(); at < toMs; at += meanMs * gap()) {
      for (let call = 0; call < size; call++) yield at
    }
  }
}

const spreads = {
  even: () => ({ size: 1, gap: () => 1 }),
  random: random => ({ size: 1, gap: () => -Math.log(1 - random()) }),
  tens: random => ({ size: 10, gap: () => -Math.log(1 - random()) }),
}
