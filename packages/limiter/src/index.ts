export {
  type Algorithm,
  type Limit,
  type Meter,
  Misfit,
  type Part,
  type Patience,
  type Terms,
} from './algorithms/algorithm.ts'
export { algorithms } from './algorithms/index.ts'
export type { RateLimitWords } from './annotation.ts'
export type { Call } from './call.ts'
export type { Clock } from './clock.ts'
export { createLimiter, type LimiterOptions } from './create-limiter.ts'
export type { Dimension } from './dimensions/dimension.ts'
export { dimensions } from './dimensions/index.ts'
export type { KeyPart } from './dimensions/key.ts'
export { formatDuration } from './duration.ts'
export { DianaError, type ErrorCode } from './errors.ts'
export type { RuleExplanation } from './explain.ts'
export { type HeaderLine, type Refusal, rateLimitHeaders, refusal } from './filters/answer.ts'
export type { CheckOptions, Limiter, LimiterEvents, RuleStatus, SectionFollower, Status } from './limiter.ts'
export type { SourceStatus } from './origin.ts'
export { normaliseTarget, type Target } from './path.ts'
export { gatherWords, importPlugins, type Plugin, pluginsNamedIn, type Words } from './plugins.ts'
export { RateLimit, type RateLimitDecorator, rateLimitsOf } from './rate-limit.ts'
export { LimitedError, rateLimited } from './rate-limited.ts'
export { RateLimiter, type RateLimiterOptions } from './rate-limiter.ts'
export { ruleFileSchema } from './rules/json-schema.ts'
export { formatMistake, type Mistake } from './rules/mistake.ts'
export type { RuleOptions } from './rules/options.ts'
export { type Parsed, parseText, type Vocabulary } from './rules/parse.ts'
export type { Answer, HeaderStyle } from './rules/rule.ts'
export type { Section } from './rules/section.ts'
export { sources } from './sources/index.ts'
export type { Source, SourceDocument, SourceKind } from './sources/source.ts'
export type { MinuteOfTraffic } from './stores/redis-statistics.ts'
export type { Outage, StoreStatus } from './stores/store-health.ts'
export type { TroubleKind } from './stores/trouble.ts'
export type { Decision, Outcome, Reason, Verdict } from './verdict.ts'
