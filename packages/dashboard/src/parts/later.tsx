import type { FunctionComponent, JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Problem } from '../api/problem.ts'
import { messages } from '../i18n/index.ts'
import { Refusal } from './answer.tsx'

/** Returns a view or a part that is loaded when it is first opened; a failed load is reported and can be repeated. */
export function later<Props extends object = Record<never, never>>(
  load: () => Promise<FunctionComponent<Props>>,
): (props: Props) => JSX.Element {
  let loaded: FunctionComponent<Props> | undefined
  return function Later(props) {
    const [, setTurn] = useState(0)
    const [problem, setProblem] = useState<Problem | undefined>(undefined)
    const turn = () => setTurn(count => count + 1)
    const start = () => {
      setProblem(undefined)
      load().then(
        view => {
          loaded = view
          turn()
        },
        error => setProblem(new Problem(0, String(error))),
      )
    }
    useEffect(() => {
      if (loaded === undefined) start()
    }, [])
    if (loaded !== undefined) {
      const View = loaded
      return <View {...props} />
    }
    if (problem !== undefined) return <Refusal problem={problem} again={start} />
    return <p class="hush">{messages.value.loading}</p>
  }
}
