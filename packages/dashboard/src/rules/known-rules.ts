import { ringOf, rules } from '../figures/live.ts'

/** The names under which figures may come: each rule, and the trial beside it where there is one. */
export function knownRules(): string[] {
  return (rules.value ?? []).flatMap(({ id }) => {
    const trial = `${id}~trial`
    return ringOf(trial) === undefined ? [id] : [id, trial]
  })
}
