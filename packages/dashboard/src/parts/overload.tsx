import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Estimate } from '../api/generated.ts'
import { LimitChart } from '../charts/limit-chart.tsx'
import { overloadFigures, second } from '../figures/live.ts'
import { formatNumber, formatRatio, formatShare, formatShort } from '../i18n/format.ts'
import { messages } from '../i18n/index.ts'

/**
 * Shows the findings of adaptive rules, and the calls that the gateway refuses because it has too much to do; nothing if neither is in
 * use.
 */
export function Overload({ wanted }: { wanted: string | undefined }): JSX.Element | null {
  const { overload: texts } = messages.value
  const [picked, setPicked] = useState<string | undefined>(undefined)
  // the figures are not signals by themselves: they are new each second
  const rules = second.value > 0 ? overloadFigures.rules : []
  const isGuarded = overloadFigures.overload !== undefined
  if (rules.length === 0 && !isGuarded) return null
  const rule = [wanted, picked].find(id => id !== undefined && rules.includes(id)) ?? rules[0]
  return (
    <section class="panel overload" aria-label={texts.title}>
      <div class="panel-head">
        <h2>{texts.title}</h2>
        {rules.length === 1 && <p class="hush">{rule}</p>}
        {rules.length > 1 && (
          <select aria-label={texts.rule} value={rule} onChange={event => setPicked(event.currentTarget.value)}>
            {rules.map(id => (
              <option key={id} value={id}>
                {id}
              </option>
            ))}
          </select>
        )}
      </div>
      {rule !== undefined && <Adaptive rule={rule} found={overloadFigures.newestOf(rule)} />}
      {isGuarded && <Shed />}
    </section>
  )
}

function Adaptive({ rule, found }: { rule: string; found: Estimate | undefined }): JSX.Element {
  const { overload: texts, units } = messages.value
  const isKnown = found !== undefined && found.perSecond > 0
  const time = (ms: number) => `${formatRatio(ms)} ${units.ms}`
  const facts: [name: string, title: string, text: string][] = [
    ['limit', texts.limit, found ? formatNumber(found.limit) : texts.unknown],
    ['in-flight', texts.inFlight, formatNumber(found?.inFlight ?? 0)],
    ['latency', texts.latency, isKnown ? time(found.latencyMs) : texts.unknown],
    ['base', texts.base, isKnown ? time(found.baseMs) : texts.unknown],
    ['per-second', texts.perSecond, isKnown ? formatShort(found.perSecond) : texts.unknown],
  ]
  return (
    <>
      <LimitChart rule={rule} label={`${texts.chart}: ${rule}`} />
      {isKnown && <p class="hush">{found.limiting ? texts.limiting : texts.open}</p>}
      <dl class="facts">
        {facts.map(([name, title, text]) => (
          <div key={name} data-fact={name}>
            <dt>{title}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </>
  )
}

/** Shows the calls that the gateway refused for itself, by level. */
function Shed(): JSX.Element {
  const { overload: texts, perSecond, time } = messages.value
  const { share, utilization } = overloadFigures.overload!
  return (
    <>
      <h3>{texts.shed}</h3>
      <dl class="facts">
        <div data-fact="share">
          <dt>{texts.share}</dt>
          <dd>{formatShare(share)}</dd>
        </div>
        <div>
          <dt>{texts.busy}</dt>
          <dd>{formatShare(utilization)}</dd>
        </div>
        {overloadFigures.shed(second.value).map(({ level, now, sum }) => (
          <div key={level} data-level={level}>
            <dt>{nameOf(level)}</dt>
            <dd>
              {formatShort(now)} {perSecond} · <b>{formatNumber(sum)}</b> {time.ranges['5m']}
            </dd>
          </div>
        ))}
      </dl>
    </>
  )
}

function nameOf(level: string): string {
  const { levels, levelOf } = messages.value.overload
  return Object.hasOwn(levels, level) ? levels[level as keyof typeof levels] : levelOf(level)
}
