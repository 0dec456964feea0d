import { blockOperations } from './blocks.ts'
import { callerOperations } from './callers.ts'
import { documentOperations } from './documents.ts'
import { draftOperations } from './drafts.ts'
import { explainOperations } from './explain.ts'
import { figureOperations } from './figures.ts'
import { historyOperations } from './history.ts'
import type { Operation } from './operation.ts'
import { overrideOperations } from './overrides.ts'
import { processOperations } from './processes.ts'
import { refusalOperations } from './refusals.ts'
import { replayOperations } from './replay.ts'
import { ruleOperations } from './rules.ts'
import { sessionOperations } from './session.ts'
import { trialOperations } from './trials.ts'
import { upstreamOperations } from './upstreams.ts'
import { versionOperations } from './versions.ts'

/** All that the admin API does, besides the live stream and its own description. */
export const operations: readonly Operation[] = [
  ...sessionOperations,
  ...figureOperations,
  ...historyOperations,
  ...ruleOperations,
  ...callerOperations,
  ...refusalOperations,
  ...blockOperations,
  ...overrideOperations,
  ...explainOperations,
  ...documentOperations,
  ...draftOperations,
  ...versionOperations,
  ...replayOperations,
  ...trialOperations,
  ...upstreamOperations,
  ...processOperations,
]
