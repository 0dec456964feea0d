import { countedPath } from 'diana-limiter/gateway'

/** The path that a call is routed and permitted by: that of its target, without parameters of segments. */
export function calledPath(target: string): string {
  return countedPath(pathOf(target))
}

/** A target without its query. */
export function pathOf(target: string): string {
  const question = target.indexOf('?')
  return question < 0 ? target : target.slice(0, question)
}
