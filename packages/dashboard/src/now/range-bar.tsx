import type { JSX } from 'preact'
import type { History } from '../api/generated.ts'
import { formatMoment } from '../i18n/format.ts'
import { messages } from '../i18n/index.ts'
import { fleetSize, otherTime, partOfTime, RANGE_NAMES, type ShownTime, wholeTime } from './shown-time.ts'

const go = (hash: string) => {
  location.hash = hash
}

/** Shows the chosen time and processes, and the ways to choose others. */
export function RangeBar({ time, history }: { time: ShownTime; history: History | undefined }): JSX.Element {
  const { time: texts } = messages.value
  return (
    <div class="range-bar">
      <fieldset class="segments">
        <legend class="unseen">{texts.label}</legend>
        {RANGE_NAMES.map(name => (
          <a
            key={name}
            class="button"
            href={otherTime({ range: name, from: undefined, to: undefined })}
            aria-current={name === time.range && time.to === undefined}
          >
            {texts.ranges[name]}
          </a>
        ))}
      </fieldset>
      <Zoom time={time} history={history} />
      <label class="check">
        <input
          type="checkbox"
          checked={time.compares}
          onChange={event => go(otherTime({ compare: event.currentTarget.checked ? undefined : 'off' }))}
        />
        {texts.compare}
      </label>
      <Scope time={time} history={history} />
    </div>
  )
}

/** Steps through time for those who cannot mark a part of the chart. */
function Zoom({ time, history }: { time: ShownTime; history: History | undefined }): JSX.Element {
  const { time: texts } = messages.value
  const { from, to } = history ?? { from: Date.now() - time.seconds * 1000, to: Date.now() }
  const length = to - from
  const move = (title: string, sign: string, first: number, last: number) => (
    <button
      type="button"
      class="quiet small"
      aria-label={title}
      title={title}
      onClick={() => go(partOfTime(first, last))}
    >
      {sign}
    </button>
  )
  return (
    <span class="zoom">
      {move(texts.earlier, '‹', from - length / 2, to - length / 2)}
      {move(texts.zoomIn, '+', from + length / 4, to - length / 4)}
      {time.to !== undefined && move(texts.later, '›', from + length / 2, to + length / 2)}
      {time.to !== undefined && (
        <>
          <span class="hush">{texts.from(formatMoment(from), formatMoment(to))}</span>
          <a class="button" href={wholeTime()}>
            {texts.whole}
          </a>
        </>
      )}
    </span>
  )
}

function Scope({ time, history }: { time: ShownTime; history: History | undefined }): JSX.Element | null {
  const { time: texts } = messages.value
  const size = fleetSize()
  const processes = history?.processes.map(({ name }) => name) ?? []
  const known =
    time.process === undefined || processes.includes(time.process) ? processes : [time.process, ...processes]
  if (size <= 1 && known.length <= 1) return null
  const choose = (value: string) => {
    const isProcess = value.startsWith('process ')
    go(otherTime({ scope: isProcess ? 'process' : value, process: isProcess ? value.slice(8) : undefined }))
  }
  return (
    <label class="scope">
      <span class="unseen">{texts.scope}</span>
      <select
        value={time.process === undefined ? time.scope : `process ${time.process}`}
        onChange={event => choose(event.currentTarget.value)}
      >
        <option value="fleet">{texts.fleet(size)}</option>
        <option value="gateway">{texts.gateway}</option>
        {known.map(name => (
          <option key={name} value={`process ${name}`}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}
