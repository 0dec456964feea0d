import type { JSX } from 'preact'
import type { History } from '../api/generated.ts'
import { Chart } from '../charts/chart.tsx'
import { connection, rules, second, status, total } from '../figures/live.ts'
import { COUNTS, type Count } from '../figures/ring.ts'
import { formatDuration, formatNumber } from '../i18n/format.ts'
import { messages } from '../i18n/index.ts'
import { ByRule } from '../now/by-rule.tsx'
import { historyData, liveData } from '../now/chart-data.ts'
import { RangeBar } from '../now/range-bar.tsx'
import { otherTime, partOfTime, type ShownTime, shownTime } from '../now/shown-time.ts'
import { Tiles } from '../now/tiles.tsx'
import { useHistory } from '../now/use-history.ts'
import { Costs } from '../parts/costs.tsx'
import { Mark } from '../parts/mark.tsx'
import { causeText } from '../parts/outage-texts.ts'
import { Overload } from '../parts/overload.tsx'
import { route } from '../route.ts'

/** Shows the counts of Diana, in all and by rule, for the chosen time and processes. */
export function Now(): JSX.Element {
  const [chosen] = route.value.rest
  const time = shownTime()
  const { history, problem } = useHistory(time, chosen)
  const choose = (rule: string | undefined) => {
    location.hash = otherTime({}, rule ?? null)
  }
  const { now: texts, time: times, loading } = messages.value
  if (rules.value === undefined && connection.value !== 'lost') return <p class="hush">{loading}</p>
  const store = status.value?.store
  // in the words of the notice above, while Redis is away
  const outage = store?.healthy === false ? causeText(store) : undefined
  const trouble = history?.trouble === undefined ? problem?.message : (outage ?? history.trouble)
  const title = chosen ?? texts.chartTotal
  const headline = time.isLive || !history ? lastMinute() : summaryOf(history, time)
  return (
    <>
      <p class="headline">{headline}</p>
      <RangeBar time={time} history={history} />
      {trouble !== undefined && !time.isLive && (
        <p class="hush" role="status">
          {times.trouble(trouble)}
        </p>
      )}
      <Tiles rule={chosen} time={time} history={history} />
      <section class="panel" aria-label={texts.chart}>
        <div class="panel-head">
          <h2>{title}</h2>
          <p class="hush">
            {texts.chartNote}
            {!time.isLive && history && ` · ${times.steps(formatDuration(history.stepMs))}`}
          </p>
          {chosen !== undefined && (
            <button type="button" class="quiet" onClick={() => choose(undefined)}>
              {texts.backToAll}
            </button>
          )}
        </div>
        {time.isLive || history ? (
          <Chart
            key={time.isLive ? 'live' : 'history'}
            label={`${texts.chart}: ${title}. ${headline}`}
            subject={`${chosen} ${history?.to} ${time.compares}`}
            data={now =>
              time.isLive || !history
                ? liveData(chosen, now, time.compares ? history : undefined)
                : historyData(history, time.compares)
            }
            onZoom={(from, to) => {
              location.hash = partOfTime(from, to)
            }}
          />
        ) : (
          <p class="chart hush">{loading}</p>
        )}
        <ul class="legend">
          {COUNTS.map(name => (
            <li key={name} class={name}>
              <Mark of={name} />
              {messages.value.counts[name]}
            </li>
          ))}
          {time.compares && <li class="earlier">{texts.before}</li>}
        </ul>
      </section>
      <Overload wanted={chosen} />
      <Costs wanted={chosen} />
      <ByRule
        chosen={chosen}
        time={time}
        history={history}
        onChoose={rule => choose(rule === chosen ? undefined : rule)}
      />
    </>
  )
}

/** Writes the sums of the time that is shown as a sentence. */
function summaryOf({ series }: History, { range, to }: ShownTime): string {
  const { time: texts } = messages.value
  const sum = (name: Count) => formatNumber(series[name].reduce<number>((all, count) => all + (count ?? 0), 0))
  return texts.summary(sum('allowed'), sum('refused'), to === undefined ? texts.ranges[range] : texts.part)
}

function lastMinute(): string {
  const { now: texts } = messages.value
  const passed = total.sum(second.value, 60, 'allowed')
  const refused = total.sum(second.value, 60, 'refused')
  if (passed + refused === 0) return texts.quiet
  if (refused === 0) return texts.calm(formatNumber(passed))
  return texts.busy(formatNumber(passed), formatNumber(refused))
}
