import { createRandom } from '../random.mjs'
import { themes } from './themes.mjs'

/** What happens in one round, as plain data: the same for the same seed and number, and the content of a replay file. */
export function planRound(seed, round, theme) {
  const random = createRandom(`${seed}/${round}`)
  const chosen = themes.find(({ name }) => name === theme) ?? random.weighted(themes.map(one => [one.weight, one]))
  const answers = chosen.answers(random)
  const { name, protocol = 'http/1.1' } = chosen
  return { seed, round, theme: name, protocol, answers, connections: chosen.connections(random, { answers }) }
}
