export type { Refusal } from '../answers/answer.ts'
export type { CustomAnswer } from '../answers/custom-answer.ts'
export type { HeaderLine } from '../answers/headers.ts'
export { admit, verdictOf } from './admit.ts'
export type { AnswerObserver, SettledCost } from './costs/cost-settling.ts'
export {
  createFilter,
  createRouteFilter,
  type Filter,
  type FilterOptions,
  type Mount,
  type ProxyTrust,
  type RouteOptions,
  type RouteRule,
} from './filter.ts'
export type { Framework, Watcher } from './frameworks/framework.ts'
export { httpFramework } from './frameworks/http.ts'
export { callOfRequest } from './request-call.ts'
