import { targets } from '../targets.mjs'
import { planRound } from './plan.mjs'

/** A gateway goes on for so many rounds, then the next configuration has its turn. */
const roundsPerGateway = 12

/** Rounds of every theme, most of which have found faults: [seed, round, theme], and the port of serve if it is another one than that of the configuration. */
const short = [
  {
    configuration: { workers: 1, filter: 'none' },
    rounds: [
      [7, 0, 'upgrades'],
      [2, 5, 'pipelines'],
      [3, 10, 'storm'],
      [2, 4, 'answers'],
      [11, 5, 'orderly'],
      [10, 0, 'http2'],
      [9, 8, 'versions'],
      [2, 1, 'resets'],
    ],
  },
  {
    configuration: { workers: 2, filter: 'own' },
    rounds: [
      [3, 1, 'answers'],
      [21, 4, 'mixed'],
      [2, 1, 'leavers'],
    ],
  },
  {
    configuration: { workers: 1, filter: 'none', isTls: true },
    rounds: [
      [8, 2, 'http2'],
      [9, 6, 'versions'],
    ],
  },
  {
    configuration: { workers: 1, filter: 'none', target: 'serve' },
    rounds: [
      [9, 6, 'versions'],
      [3, 1, 'resets'],
      [7, 6, 'resets', 'grpc'],
      [1, 6, 'spoe', 'spoe'],
      [1, 6, 'resp', 'redis'],
      [9, 6, 'versions', 'admin'],
    ],
  },
]

/** The rounds to play, each with the configuration of its gateway; rounds of one configuration object share a gateway. */
export function* createJobs({ replay, short: isShort, ...options }) {
  if (replay) yield replay
  else if (isShort) yield* createShortJobs()
  else yield* createRandomJobs(options)
}

function* createShortJobs() {
  for (const { configuration, rounds } of short) {
    for (const [seed, round, theme, target] of rounds) {
      const plan = planRound(seed, round, theme)
      yield { configuration, plan: target === undefined ? plan : { ...plan, target } }
    }
  }
}

function* createRandomJobs({ seed, round: first = 0, rounds = Number.POSITIVE_INFINITY, theme, chosen }) {
  for (let done = 0; done < rounds; done++) {
    const configuration = chosen[Math.floor(done / roundsPerGateway) % chosen.length]
    // a port of serve gets those that fit it, in turn
    const fitting = configuration.target && targets[configuration.target].themes
    yield { configuration, plan: planRound(seed, first + done, theme ?? fitting?.[done % fitting.length]) }
  }
}
