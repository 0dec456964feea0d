import type { Status } from '../limiter-status.ts'
import { amountNames } from '../stats/amounts.ts'
import type { Stats } from '../stats/stats.ts'
import type { Counts } from '../stats/tally.ts'

/** The limiter that is measured, or several processes together. */
export interface Measured {
  stats(): Stats | Promise<Stats>
  status(): Status | Promise<Status>
}

/** One measurement, as each system names it. Labels hold rules and sources, never callers, addresses or paths. */
export interface Measure {
  /** Prometheus: base units, counters end with _total. */
  readonly name: string
  /** OpenTelemetry. */
  readonly otelName: string
  readonly unit: string
  readonly kind: 'counter' | 'gauge'
  readonly help: string
  read(stats: Stats, status: Status): readonly Reading[]
}

export interface Reading {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export const durationName = {
  name: 'diana_decision_duration_seconds',
  otelName: 'diana.rate_limiting.decision.duration',
  help: 'How long a decision took, without the time that a call waits because a rule says so; one call in 128 is timed.',
} as const

const none: Readonly<Record<string, string>> = {}
/** The most rules of which also those without a call have series. */
const MOST_UNUSED = 1000

export const measures: readonly Measure[] = [
  {
    name: 'diana_calls_total',
    otelName: 'diana.rate_limiting.calls',
    unit: '{call}',
    kind: 'counter',
    help: 'Calls judged, each once, by what became of them.',
    read: ({ total }) => [
      { labels: { decision: 'allow' }, value: total.allowed },
      { labels: { decision: 'deny' }, value: total.refused },
    ],
  },
  {
    name: 'diana_unjudged_calls_total',
    otelName: 'diana.rate_limiting.unjudged_calls',
    unit: '{call}',
    kind: 'counter',
    help: 'Calls that Diana failed to judge, by what became of them: allow (they passed uncounted), deny (whenFailed: refuse).',
    read: ({ unjudged }) => [
      { labels: { decision: 'allow' }, value: unjudged?.passed ?? 0 },
      { labels: { decision: 'deny' }, value: unjudged?.refused ?? 0 },
    ],
  },
  {
    name: 'diana_requests_total',
    otelName: 'diana.rate_limiting.requests',
    unit: '{call}',
    kind: 'counter',
    help:
      'Calls per rule: allow (it met the rule and passed), deny (the rule refused it), shadow_deny (a shadow rule would have), ' +
      'error_allow and error_deny (decided while the store could not be asked). A call that meets several rules is in each.',
    read: ({ rules }) =>
      (rules.length > MOST_UNUSED ? rules.filter(({ allowed, refused }) => allowed + refused > 0) : rules).flatMap(
        rule => decisionsOf(rule).map(([decision, value]) => ({ labels: { rule: rule.id, decision }, value })),
      ),
  },
  {
    name: 'diana_waited_total',
    otelName: 'diana.rate_limiting.waited',
    unit: '{call}',
    kind: 'counter',
    help: 'Calls that a rule let pass after a wait.',
    read: ({ rules }) =>
      rules.filter(({ waited }) => waited > 0).map(({ id, waited }) => ({ labels: { rule: id }, value: waited })),
  },
  {
    name: 'diana_adaptive_limit',
    otelName: 'diana.rate_limiting.adaptive.limit',
    unit: '{call}',
    kind: 'gauge',
    help: 'The limit that an adaptive rule has found; of its keys, for the one with the most calls in flight.',
    read: ({ rules }) => ofEstimates(rules, ({ limit }) => limit),
  },
  {
    name: 'diana_adaptive_in_flight',
    otelName: 'diana.rate_limiting.adaptive.in_flight',
    unit: '{call}',
    kind: 'gauge',
    help: 'The calls that are in flight by an adaptive rule.',
    read: ({ rules }) => ofEstimates(rules, ({ inFlight }) => inFlight),
  },
  {
    name: 'diana_adaptive_latency_seconds',
    otelName: 'diana.rate_limiting.adaptive.latency',
    unit: 's',
    kind: 'gauge',
    help: 'How long an answer takes while nothing waits, as an adaptive rule has measured it.',
    read: ({ rules }) => ofEstimates(rules, ({ baseMs }) => baseMs / 1000),
  },
  {
    name: 'diana_overload_share',
    otelName: 'diana.rate_limiting.overload.share',
    unit: '1',
    kind: 'gauge',
    help: 'The part of the calls that this process admits; below 1 it refuses calls because it has too much to do.',
    read: ({ overload }) => (overload ? [{ labels: none, value: overload.share }] : []),
  },
  {
    name: 'diana_overload_shed_total',
    otelName: 'diana.rate_limiting.overload.shed',
    unit: '{call}',
    kind: 'counter',
    help: 'Calls refused because this process had too much to do, by their level.',
    read: ({ overload }) =>
      Object.entries(overload?.shed ?? {}).map(([level, value]) => ({ labels: { level }, value })),
  },
  {
    name: 'diana_cost_settled_calls_total',
    otelName: 'diana.rate_limiting.cost.settled_calls',
    unit: '{call}',
    kind: 'counter',
    help:
      'Calls whose cost was settled after their answer, by what: usage (in the answer), header, estimate (the answer said nothing, ' +
      'or could not be read), none (not served: nothing was charged).',
    read: ({ rules }) =>
      rules.flatMap(({ id, settled }) =>
        (['usage', 'header', 'estimate', 'none'] as const).flatMap(by =>
          settled === undefined ? [] : [{ labels: { rule: id, by }, value: settled[by] }],
        ),
      ),
  },
  {
    name: 'diana_cost_bounded_calls_total',
    otelName: 'diana.rate_limiting.cost.bounded_calls',
    unit: '{call}',
    kind: 'counter',
    help: 'Calls whose answer reported a cost above the maximum of the rule, which counted as the maximum.',
    read: ({ rules }) =>
      rules.flatMap(({ id, settled }) =>
        settled === undefined ? [] : [{ labels: { rule: id }, value: settled.bounded }],
      ),
  },
  {
    name: 'diana_waiting',
    otelName: 'diana.rate_limiting.queued_requests',
    unit: '{call}',
    kind: 'gauge',
    help: 'Calls that wait at this moment.',
    read: ({ rules }) =>
      rules
        .filter(({ waited, waiting }) => waited + waiting > 0)
        .map(({ id, waiting }) => ({ labels: { rule: id }, value: waiting })),
  },
  {
    name: 'diana_store_up',
    otelName: 'diana.rate_limiting.store.up',
    unit: '1',
    kind: 'gauge',
    help: 'Whether the store that the fleet shares can be asked; absent where there is none.',
    read: (_, { store }) => (store ? [{ labels: none, value: store.healthy ? 1 : 0 }] : []),
  },
  {
    name: 'diana_store_trouble',
    otelName: 'diana.rate_limiting.store.trouble',
    unit: '1',
    kind: 'gauge',
    help: 'Why the store cannot be asked, by code; absent while it can be.',
    read: (_, { store }) => (store?.code === undefined ? [] : [{ labels: { code: store.code }, value: 1 }]),
  },
  {
    name: 'diana_store_clock_steps',
    otelName: 'diana.rate_limiting.store.clock_steps',
    unit: '{step}',
    kind: 'gauge',
    help: 'Steps of the clock of the store that this process has noticed, the last 20 at most.',
    read: (_, { store }) => (store ? [{ labels: none, value: store.clockSteps.length }] : []),
  },
  {
    name: 'diana_store_decisions_total',
    otelName: 'diana.rate_limiting.store.decisions',
    unit: '{call}',
    kind: 'counter',
    help:
      'Calls with rules that are counted in the store, by what decided them: store (it was asked), lease (permits held in advance), ' +
      'process (a key known to have nothing left, or a store that cannot be asked).',
    read: ({ store }) =>
      store
        ? [
            { labels: { by: 'store' }, value: store.asked },
            { labels: { by: 'lease' }, value: store.leases.decided },
            { labels: { by: 'process' }, value: store.decidedHere },
          ]
        : [],
  },
  {
    name: 'diana_lease_requests_total',
    otelName: 'diana.rate_limiting.leases.requests',
    unit: '{request}',
    kind: 'counter',
    help: 'Requests to the store that reported permits which were held in advance, and reserved others.',
    read: ({ store }) => (store ? [{ labels: none, value: store.leases.requests }] : []),
  },
  {
    name: 'diana_cost_total',
    otelName: 'diana.rate_limiting.cost',
    unit: '{unit}',
    kind: 'counter',
    help:
      'Units of limits per rule that were reserved; settled (really used), released (reserved and not used), expired (not settled ' +
      'in time) and overrun (used beyond what was reserved).',
    read: ({ rules }) =>
      rules.flatMap(({ id, amounts }) =>
        amounts === undefined ? [] : amountNames.map(state => ({ labels: { rule: id, state }, value: amounts[state] })),
      ),
  },
  {
    name: 'diana_leased_keys',
    otelName: 'diana.rate_limiting.leases.keys',
    unit: '{key}',
    kind: 'gauge',
    help: 'Callers whose permits are held in advance.',
    read: ({ store }) => (store ? [{ labels: none, value: store.leases.keys }] : []),
  },
  {
    name: 'diana_leased_permits',
    otelName: 'diana.rate_limiting.leases.permits',
    unit: '{permit}',
    kind: 'gauge',
    help: 'Permits that are held in advance; absent for rules whose permits never are.',
    read: ({ rules }) =>
      rules.flatMap(({ id, leased, allowed, refused }) =>
        leased === undefined || allowed + refused === 0 ? [] : [{ labels: { rule: id }, value: leased }],
      ),
  },
  {
    name: 'diana_start_time_seconds',
    otelName: 'diana.rate_limiting.start_time',
    unit: 's',
    kind: 'gauge',
    help: 'When this process was started, in seconds since 1970.',
    read: () => [{ labels: none, value: performance.timeOrigin / 1000 }],
  },
  {
    name: 'diana_rules',
    otelName: 'diana.rate_limiting.rules',
    unit: '{rule}',
    kind: 'gauge',
    help: 'Rules in force.',
    read: (_, { rules }) => [{ labels: none, value: rules.length }],
  },
  {
    name: 'diana_local_keys',
    otelName: 'diana.rate_limiting.local_keys',
    unit: '{key}',
    kind: 'gauge',
    help: 'Callers that are counted apart in memory.',
    read: (_, { keys }) => [{ labels: none, value: keys }],
  },
  {
    name: 'diana_local_keys_limit',
    otelName: 'diana.rate_limiting.local_keys.limit',
    unit: '{key}',
    kind: 'gauge',
    help: 'The most callers that are counted apart in memory.',
    read: (_, { maxKeys }) => [{ labels: none, value: maxKeys }],
  },
  {
    name: 'diana_overflowing_rules',
    otelName: 'diana.rate_limiting.overflowing_rules',
    unit: '{rule}',
    kind: 'gauge',
    help: 'Rules whose new callers share one counter, because memory holds as many as it may.',
    read: (_, { overflowing }) => [{ labels: none, value: overflowing.length }],
  },
  {
    name: 'diana_config_reload_total',
    otelName: 'diana.rate_limiting.config.reloads',
    unit: '{document}',
    kind: 'counter',
    help: 'Rule documents taken and rejected, by source.',
    read: (_, { sources }) =>
      sources.flatMap(({ role, taken, rejected }) => [
        { labels: { source: role, result: 'taken' }, value: taken },
        { labels: { source: role, result: 'rejected' }, value: rejected },
      ]),
  },
  {
    name: 'diana_config_last_success_timestamp_seconds',
    otelName: 'diana.rate_limiting.config.last_success',
    unit: 's',
    kind: 'gauge',
    help: 'When the document in force was taken, by source.',
    read: (_, { sources }) =>
      sources
        .filter(({ takenAt }) => takenAt !== undefined)
        .map(({ role, takenAt }) => ({ labels: { source: role }, value: takenAt! / 1000 })),
  },
  {
    name: 'diana_config_trouble',
    otelName: 'diana.rate_limiting.config.trouble',
    unit: '1',
    kind: 'gauge',
    help: 'Whether a source cannot be read, or its newest document cannot be used.',
    read: (_, { sources }) =>
      sources.map(({ role, trouble }) => ({ labels: { source: role }, value: trouble === undefined ? 0 : 1 })),
  },
]

/** Returns the calls of a rule by outcome; outcomes that never happened are omitted, except those that every rule may have. */
/** Returns the counts of a rule; those of allow and deny also before the first call, or a rate would miss the first refusal. */
function decisionsOf(counts: Counts): [decision: string, value: number][] {
  const { allowed, refused, shadowRefused, degradedAllowed, degradedRefused } = counts
  const words: [string, number][] = [
    ['allow', Math.max(0, allowed - shadowRefused - degradedAllowed)],
    ['deny', refused - degradedRefused],
    ['shadow_deny', shadowRefused],
    ['error_allow', degradedAllowed],
    ['error_deny', degradedRefused],
  ]
  return words.filter(([word, value]) => value > 0 || word === 'allow' || word === 'deny')
}

function ofEstimates(
  rules: Stats['rules'],
  value: (estimate: NonNullable<Stats['rules'][number]['estimate']>) => number,
): readonly Reading[] {
  return rules.flatMap(({ id, estimate }) => (estimate ? [{ labels: { rule: id }, value: value(estimate) }] : []))
}
