import { placeInWords } from '../report/results.ts'
import type { Coverage } from './coverage.ts'
import type { MutationResult } from './mutate.ts'

export function coverageLines(coverage: Coverage): string[] {
  const { branches, missed } = coverage.result()
  const reached = branches - missed.length
  const lines = [`coverage of ${coverage.rules}: ${reached} of ${branches} (${percentOf(reached, branches)} %)`]
  for (const { rule, place, what } of missed) {
    const subject = rule === '' ? '' : ` rule "${rule}":`
    lines.push(`  ${place === undefined ? coverage.rules : placeInWords(place)}:${subject} no case ${what}`)
  }
  return lines
}

export function mutationLines({ rules, changes, unnoticed }: MutationResult): string[] {
  const noticed = changes - unnoticed.length
  const lines = [`changes of ${rules}: ${noticed} of ${changes} are noticed (${percentOf(noticed, changes)} %)`]
  for (const { rule, place, what } of unnoticed) {
    lines.push(`  ${place === undefined ? rules : placeInWords(place)}: rule "${rule}": no case notices that ${what}`)
  }
  return lines
}

function percentOf(part: number, all: number): string {
  return all === 0 ? '100' : ((part / all) * 100).toFixed(1).replace(/\.0$/, '')
}
