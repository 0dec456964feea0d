import { blockOperations } from './blocks.ts'
import { callerOperations } from './callers.ts'
import { documentOperations } from './documents.ts'
import { explainOperations } from './explain.ts'
import { figureOperations } from './figures.ts'
import type { Operation } from './operation.ts'
import { overrideOperations } from './overrides.ts'
import { processOperations } from './processes.ts'
import { refusalOperations } from './refusals.ts'
import { replayOperations } from './replay.ts'
import { ruleOperations } from './rules.ts'
import { sessionOperations } from './session.ts'
import { trialOperations } from './trials.ts'
import { upstreamOperations } from './upstreams.ts'

/** All that the admin API does, besides the live stream and its own description. */
export const operations: readonly Operation[] = [
  ...sessionOperations,
  ...figureOperations,
  ...ruleOperations,
  ...callerOperations,
  ...refusalOperations,
  ...blockOperations,
  ...overrideOperations,
  ...explainOperations,
  ...documentOperations,
  ...replayOperations,
  ...trialOperations,
  ...upstreamOperations,
  ...processOperations,
]
