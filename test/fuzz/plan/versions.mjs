import { createRequest, createUpgrade } from './requests.mjs'
import { departure } from './scripts.mjs'

const versions = ['2.0', '2.0', '0.9', '0.9', '3.0', '1.2', '2.1', '9.9', '0.0', '1.0', '1.10', '10.1', '2', '']

/** Calls of all kinds whose first lines end with another version, alone or between calls of HTTP/1.1. */
export function versionCalls(random, { answers }) {
  const requests = random.list(random.pick([1, 1, 1, 2, 5]), () => {
    const kind = random.int(0, 3)
    const { text } =
      kind === 0
        ? createUpgrade(random, { answers })
        : createRequest(random, { answers, plain: kind === 1, body: random.chance(0.5) })
    const expecting = random.chance(0.3) ? text.replace('\r\n', '\r\nExpect: 100-continue\r\n') : text
    return random.chance(0.8) ? expecting.replace(/HTTP\/1\.\d+/, `HTTP/${random.pick(versions)}`) : expecting
  })
  const holds = random.chance(0.4) ? [{ pause: random.int(500, 1500) }] : []
  return { requests: requests.length, steps: [{ write: requests.join('') }, ...holds, ...departure(random)] }
}
