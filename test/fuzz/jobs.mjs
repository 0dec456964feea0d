import { planRound } from './plan.mjs'

/** A gateway goes on for so many rounds, then the next configuration has its turn. */
const roundsPerGateway = 12

const short = [
  { configuration: { workers: 1, filter: 'none' }, themes: ['orderly', 'upgrades', 'pipelines', 'storm'] },
  { configuration: { workers: 2, filter: 'own' }, themes: ['answers', 'mixed', 'leavers', 'upgrades'] },
]

/** The rounds to play, each with the configuration of its gateway; rounds of one configuration object share a gateway. */
export function* createJobs({ replay, short: isShort, ...options }) {
  if (replay) yield replay
  else if (isShort) yield* createShortJobs()
  else yield* createRandomJobs(options)
}

function* createShortJobs() {
  for (const { configuration, themes } of short) {
    for (const [round, theme] of themes.entries()) yield { configuration, plan: planRound(1, round, theme) }
  }
}

function* createRandomJobs({ seed, round: first = 0, rounds = Number.POSITIVE_INFINITY, theme, chosen }) {
  for (let done = 0; done < rounds; done++) {
    const configuration = chosen[Math.floor(done / roundsPerGateway) % chosen.length]
    yield { configuration, plan: planRound(seed, first + done, theme) }
  }
}
