/**
 * When one process offers its calls, in milliseconds from the start. `parts` are stretches of time, each with its rate;
 * `spread` is how the calls lie in them: evenly, at random (Poisson), or ten at once.
 */
export function* arrivals({ parts, spread, seed }) {
  const random = randomBy(seed)
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

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function randomBy(seed) {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
