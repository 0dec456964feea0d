import { useEffect, useState } from 'preact/hooks'
import { api, type HistoryQuestion } from '../api/api.ts'
import type { History, StepSeries } from '../api/generated.ts'
import type { Problem } from '../api/problem.ts'
import type { Count } from '../figures/ring.ts'
import { problemOf } from '../parts/answer.tsx'
import type { ShownTime } from './shown-time.ts'

/** The history of a time, read again as long as it changes. */
export interface ReadHistory {
  readonly history: History | undefined
  readonly problem: Problem | undefined
}

const FINE_MS = 5000
const COARSE_MS = 60_000

export function useHistory({ seconds, to, scope, process }: ShownTime, rule: string | undefined): ReadHistory {
  const [read, setRead] = useState<ReadHistory & { readonly asked: string }>({
    history: undefined,
    problem: undefined,
    asked: '',
  })
  const question: HistoryQuestion = { seconds, to, scope, process, rule }
  const asked = JSON.stringify(question)
  useEffect(() => {
    const leaving = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const load = async () => {
      if (!document.hidden) {
        try {
          const history = await api.history(question, leaving.signal)
          if (!leaving.signal.aborted) setRead({ history, problem: undefined, asked })
        } catch (error) {
          // the earlier answer stays in sight
          if (!leaving.signal.aborted) setRead(before => ({ ...before, problem: problemOf(error) }))
        }
      }
      if (!leaving.signal.aborted) timer = setTimeout(load, seconds <= 3600 && to === undefined ? FINE_MS : COARSE_MS)
    }
    void load()
    return () => {
      leaving.abort()
      clearTimeout(timer)
    }
  }, [asked])
  return { history: read.asked === asked ? read.history : undefined, problem: read.problem }
}

/** Adds up all steps; undefined if too little is known of them. */
export function sumOf(series: StepSeries | undefined, name: Count): number | undefined {
  const known = series?.[name].filter(count => count !== null) ?? []
  if (series === undefined || known.length < 0.9 * series[name].length) return undefined
  return known.reduce((sum, count) => sum + count, 0)
}
