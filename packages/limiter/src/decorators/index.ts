export type { RateLimitOptions } from './annotation.ts'
export { RateLimit, type RateLimitDecorator, rateLimitsOf } from './rate-limit.ts'
export { LimitedError, rateLimited } from './wrap-function.ts'
