import type { JSX } from 'preact'
import type { History } from '../api/generated.ts'
import { ringOf, second, total, waitingFor } from '../figures/live.ts'
import { COUNTS, type Count, SECONDS } from '../figures/ring.ts'
import { formatChange, formatNumber, formatShort } from '../i18n/format.ts'
import { messages } from '../i18n/index.ts'
import { Mark } from '../parts/mark.tsx'
import type { ShownTime } from './shown-time.ts'
import { sumOf } from './use-history.ts'

interface TilesProps {
  readonly rule: string | undefined
  readonly time: ShownTime
  readonly history: History | undefined
}

/** Shows four counts: each per second, in the time that is shown, and compared with the time before. */
export function Tiles({ rule, time, history }: TilesProps): JSX.Element {
  const { counts, countsLong, perSecond, time: texts, now } = messages.value
  const waiting = waitingFor(rule)
  return (
    <dl class="tiles">
      {COUNTS.map(name => {
        const { rate, sum } = shown(name, { rule, time, history })
        const change = time.compares ? changeOf(history, name) : undefined
        return (
          <div key={name} class={`tile ${name}`}>
            <dt>
              <Mark of={name} />
              {counts[name]}
            </dt>
            <dd>
              <strong data-rate={name}>{formatShort(rate)}</strong> <small>{perSecond}</small>
            </dd>
            <dd class="sum">
              <span data-sum={name}>{formatNumber(sum)}</span> ·{' '}
              {time.to === undefined ? texts.ranges[time.range] : texts.part}
            </dd>
            {change !== undefined && (
              <dd class="sum" data-change={name}>
                {texts.change(formatChange(change))}
              </dd>
            )}
            <dd class="hush">
              {name === 'waited' && waiting > 0 ? now.waiting(formatNumber(waiting)) : countsLong[name]}
            </dd>
          </div>
        )
      })}
    </dl>
  )
}

function shown(name: Count, { rule, time, history }: TilesProps): { readonly rate: number; readonly sum: number } {
  if (time.isLive) {
    const ring = rule === undefined ? total : ringOf(rule)
    return { rate: ring?.at(second.value, name) ?? 0, sum: ring?.sum(second.value, SECONDS, name) ?? 0 }
  }
  const known = history?.series[name].filter(count => count !== null) ?? []
  const sum = known.reduce((all, count) => all + count, 0)
  const seconds = (known.length * (history?.stepMs ?? 0)) / 1000
  return { rate: seconds === 0 ? 0 : sum / seconds, sum }
}

/** Returns the difference from the time before, as a share of it; undefined if that time is unknown or had no calls. */
function changeOf(history: History | undefined, name: Count): number | undefined {
  const [now, before] = [sumOf(history?.series, name), sumOf(history?.before, name)]
  return now === undefined || before === undefined || before === 0 ? undefined : now / before - 1
}
