import { planRound } from './plan.mjs'

/** A gateway goes on for so many rounds, then the next configuration has its turn. */
const roundsPerGateway = 12

/** Rounds that have found faults: [seed, round, theme]. */
const short = [
  {
    configuration: { workers: 1, filter: 'none' },
    rounds: [
      [7, 0, 'upgrades'],
      [2, 5, 'pipelines'],
      [3, 10, 'storm'],
      [2, 4, 'answers'],
      [11, 5, 'orderly'],
      [1, 9, 'http2'],
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
    rounds: [[1, 4, 'http2']],
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
    for (const one of rounds) yield { configuration, plan: planRound(...one) }
  }
}

function* createRandomJobs({ seed, round: first = 0, rounds = Number.POSITIVE_INFINITY, theme, chosen }) {
  for (let done = 0; done < rounds; done++) {
    const configuration = chosen[Math.floor(done / roundsPerGateway) % chosen.length]
    yield { configuration, plan: planRound(seed, first + done, theme) }
  }
}
