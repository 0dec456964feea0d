export type { RateLimitOptions } from './annotation.ts'
export { LimitedError } from './limited-error.ts'
export { RateLimit, type RateLimitDecorator, rateLimitsOf } from './rate-limit.ts'
export { rateLimited } from './wrap-function.ts'
