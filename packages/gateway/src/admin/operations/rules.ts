import { algorithms, dimensions, formatDuration, type Rule, sources } from 'diana-limiter'
import { adminOf } from 'diana-limiter/admin'
import { ruleFileSchema, z } from 'diana-limiter/schema'
import { stringify } from 'yaml'
import { type AdminContext, type Operation, operation } from './operation.ts'
import { count, estimate, ruleId, unit, where } from './shapes.ts'

const ruleShape = z
  .object({
    id: ruleId,
    origin: z.string(),
    where,
    algorithm: z.string(),
    limits: z.array(z.object({ count: z.number(), periodMs: z.number(), unit })),
    by: z.array(z.string()),
    match: z.record(z.string(), z.unknown()),
    whenFull: z.enum(['refuse', 'wait', 'shadow']),
    count: z.enum(['local', 'distributed']),
    whenStoreDown: z.enum(['share', 'local', 'allow', 'refuse']),
    lease: z.enum(['auto', 'off']),
    state: z.enum(['on', 'shadow', 'off']),
    canBlock: z.boolean().describe('Whether callers can be blocked by it: it has `block`.'),
    canOverride: z.boolean().describe('Whether operators set limits of single callers: it has `overrides`.'),
    hasCredit: z.boolean().describe('Whether callers may have credit beside the limit.'),
    waiting: count,
    leased: count.describe('Permits that the processes of this gateway hold in advance.'),
    estimate: estimate.optional().describe('What an adaptive rule has found, by all processes together.'),
    text: z.string().describe('The rule as it stands in its document.'),
  })
  .meta({ title: 'Rule' })

export const ruleOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/rules',
    summary: 'The rules in force, and those that are turned off.',
    answer: z.object({ rules: z.array(ruleShape) }),
    run: async (_, context) => ({ rules: await describeRules(context) }),
  }),
  operation({
    method: 'GET',
    path: '/schema',
    summary: 'The JSON Schema of the rule file.',
    answer: z.record(z.string(), z.unknown()),
    run: () => ruleFileSchema({ algorithms, dimensions, sources }),
  }),
]

async function describeRules({ limiter, live }: AdminContext): Promise<object[]> {
  const { rules, sources } = limiter.status()
  const remote = sources.find(({ role }) => role === 'remote')?.name
  const waiting = new Map(rules.map(rule => [rule.id, rule.waiting]))
  const stats = new Map(live.stats?.rules.map(rule => [rule.id, rule]))
  const texts = {
    local: await adminOf(limiter).documents.ruleTexts('local'),
    remote: await adminOf(limiter).documents.ruleTexts('remote'),
  }
  return limiter.rules.map(rule => {
    const { id, origin = 'options', algorithm, limits, by, match, whenFull, whenStoreDown, lease } = rule
    const where = origin === remote ? 'remote' : 'local'
    return {
      id,
      origin,
      where,
      algorithm,
      limits,
      by,
      match,
      whenFull,
      count: rule.count,
      whenStoreDown,
      lease,
      state: rule.enabled ? (whenFull === 'shadow' ? 'shadow' : 'on') : 'off',
      canBlock: rule.block !== undefined,
      canOverride: rule.plans?.overrides === true,
      hasCredit: rule.credit === true,
      waiting: waiting.get(id) ?? 0,
      leased: stats.get(id)?.leased ?? 0,
      estimate: stats.get(id)?.estimate,
      text: texts[where].get(id) ?? inWords(rule),
    }
  })
}

/** Returns a rule that was given in code, as a file would say it. */
function inWords({ id, match, by, algorithm, limits, options, whenFull }: Rule): string {
  const limit = limits.map(({ count, periodMs, unit }) => {
    return periodMs === 0 ? count : `${count}/${unit ?? formatDuration(periodMs)}`
  })
  const words = {
    id,
    ...(Object.keys(match).length > 0 ? { match } : {}),
    ...(by.length > 0 ? { by: by.length === 1 ? by[0] : by } : {}),
    algorithm,
    limit: limit.length === 1 ? limit[0] : limit,
    ...options,
    ...(whenFull === 'refuse' ? {} : { whenFull }),
  }
  return stringify(words).trimEnd()
}
