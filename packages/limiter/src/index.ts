export {
  type Algorithm,
  InvalidLimitError,
  type Limit,
  type LuaAlgorithm,
  type Meter,
  type MeterHeld,
  type MeterLearning,
  type MeterMemory,
  type MeterMigration,
  type MeterRate,
  type MeterRedis,
  type MeterStart,
  type Part,
  type PassResult,
  type Terms,
  type WaitOptions,
} from './algorithms/algorithm.ts'
// all of it, since TypeScript lets users augment only interfaces that are exported this way
export type * from './algorithms/index.ts'
export { algorithms } from './algorithms/index.ts'
export { type Refusal, refusal } from './answers/answer.ts'
export { type HeaderLine, rateLimitHeaders } from './answers/headers.ts'
export type { Call, ClientCertificate } from './call.ts'
export { callerAddress } from './caller-address.ts'
export type { Clock } from './common/clock.ts'
export { formatDuration, parseDuration } from './common/duration.ts'
export type { OptionShape, SchemaKit, Shapes } from './common/option-shape.ts'
export { createLimiter, type TypedRules, typedRules } from './create/create-limiter.ts'
export type { RedisStoreOptions, TransactionalStoreOptions } from './create/given-store.ts'
export type { LimiterOptions } from './create/limiter-options.ts'
export type { BlockedCaller, PlainKey, Who } from './decision/blocklist.ts'
export type { CheckOptions, NamedRules } from './decision/check-options.ts'
export type { CallerStanding, Explanation, RuleExplanation } from './decision/explain.ts'
export type { JointCall } from './decision/joint-decision.ts'
export type { Reservation, ReserveOptions } from './decision/settlement.ts'
export { describeKey } from './dimensions/describe-key.ts'
export type { Dimension, DimensionSettings } from './dimensions/dimension.ts'
export { dimensions } from './dimensions/index.ts'
export type { KeyPart } from './dimensions/key.ts'
export { DianaError, type ErrorCode } from './errors.ts'
export { normalizeTarget, type Target } from './http/path.ts'
export type { JobContext, JobEvents, JobQueue, ScheduleOptions } from './jobs/job-queue.ts'
export type { Limiter } from './limiter.ts'
export type { LimiterEvents, RuleStatus, Status } from './limiter-status.ts'
export { diana, rateLimit } from './other-entries.ts'
export { RateLimiter, type RateLimiterOptions } from './pacing/rate-limiter.ts'
export type { Plugin } from './reload/plugins.ts'
export type { SourceStatus } from './reload/source-state.ts'
export type { Mistake } from './rules/mistake.ts'
export type { Answer, HeaderStyle, Match, Queue, Rule, RuleDocument, WhenFull, WhenStoreDown } from './rules/rule.ts'
export type {
  CallerOptions,
  CommonRuleOptions,
  DocumentOptions,
  RuleOptions,
  StoreOptions,
} from './rules/schema/options.ts'
export type { Section } from './rules/schema/section.ts'
export { sources } from './sources/index.ts'
export type { Source, SourceDocument, SourceKind } from './sources/source.ts'
export type { Outage, StoreStats, StoreStatus } from './stores/failover/store-health.ts'
export type { LeaseStats } from './stores/leases/lease-book.ts'
export type { RedisTarget } from './stores/redis/connection/client.ts'
export type { TroubleKind } from './stores/store-error.ts'
export type { StoreCode } from './stores/store-error-causes.ts'
export type { ActualCost, Decision, Outcome, Reason, Verdict } from './verdict.ts'
