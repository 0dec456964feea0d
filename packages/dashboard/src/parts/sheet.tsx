import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

interface SheetProps {
  readonly title: string
  readonly onBack: () => void
  readonly children: ComponentChildren
}

/** Shows a dialog over the page; when it closes, the focus returns to its former place. */
export function Sheet({ title, onBack, children }: SheetProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const before = document.activeElement
    dialog.current?.showModal()
    return () => returnFocus(before)
  }, [])
  return (
    <dialog ref={dialog} class="sheet" aria-label={title} onClose={onBack}>
      <h2>{title}</h2>
      {children}
    </dialog>
  )
}

/** Puts the focus on an element again, or on the content of the page if the element is gone. */
export function returnFocus(element: Element | null): void {
  const target = element instanceof HTMLElement && element.isConnected ? element : document.getElementById('content')
  target?.focus()
}
