// The events of a session: pages of old ones, and a stream that goes on where it was cut.

import { get, me, readEvents, whoAmI } from "./api.js";

const PAGE = 150; // entries of the journal
const SHORTEST = 300; // milliseconds before the first attempt to connect again
const LONGEST = 5000;
const SILENT = 45_000; // milliseconds without the server's sign of life (every 15 s) after which it is asked again
const HIDDEN = 60_000; // milliseconds after which a page that nobody sees lets its connection go

/**
 * `listener`: `ontake(event)` for each new event once, in order; `onstate(isConnected)`; `ongap()` when
 * transient events may have been missed.
 */
export class EventStream {
  constructor(session, listener) {
    this.session = session;
    this.listener = listener;
    this.last = 0; // number of the newest entry of which an event came
    this.told = 0; // events of that entry that came
    this.skipped = 0; // of those, how many the present connection repeats
    this.oldest = 0;
    this.wait = SHORTEST;
    this.isClosed = false;
    this.onvisible = () => this.look();
    document.addEventListener("visibilitychange", this.onvisible);
    addEventListener("online", this.onvisible);
  }

  /** Return the events of the newest entries up to one, and remember to go on behind it. */
  async begin(newest) {
    this.last = newest;
    this.told = Infinity;
    this.oldest = newest;
    return this.older();
  }

  /** Return the events of the page before the oldest one that is known. */
  async older() {
    const upto = this.oldest;
    if (upto === 0) return [];
    const after = Math.max(0, upto - PAGE);
    const id = encodeURIComponent(this.session);
    const { events } = await get(`/sessions/${id}/events?after=${after}&upto=${upto}`);
    this.oldest = after;
    return events;
  }

  connect() {
    if (this.isClosed) return;
    clearTimeout(this.timer);
    this.cut?.abort();
    this.skipped = 0;
    const after = this.told === Infinity ? this.last : Math.max(0, this.last - 1);
    const cut = (this.cut = new AbortController());
    const onopen = () => {
      this.wait = SHORTEST;
      this.listener.onstate(true);
    };
    const { signal } = cut;
    const onsign = () => {
      clearTimeout(this.silence);
      this.silence = setTimeout(() => cut.abort(), SILENT);
    };
    onsign();
    const ontake = (event) => this.take(event);
    readEvents(this.session, after, { signal, onopen, onsign, ontake }).catch(() => {}).finally(() => this.lose(cut));
  }

  take(event) {
    const { seq } = event;
    if (seq !== null) {
      if (seq < this.last) return;
      if (seq === this.last) {
        if (this.skipped < this.told) {
          this.skipped += 1;
          return;
        }
        this.told += 1;
        this.skipped = this.told;
      } else {
        this.last = seq;
        this.told = this.skipped = 1;
      }
    }
    try {
      this.listener.ontake(event);
    } catch (error) {
      reportError(error); // what is wrong with one event does not end the stream
    }
  }

  async lose(cut) {
    if (cut !== this.cut || this.isClosed) return;
    this.cut = null;
    this.listener.onstate(false);
    this.listener.ongap();
    try {
      await whoAmI();
      if (!me) return this.listener.onlost();
    } catch {
      // the server is not there: it is asked again
    }
    if (this.isClosed) return;
    this.timer = setTimeout(() => this.connect(), this.wait);
    this.wait = Math.min(LONGEST, this.wait * 1.7);
  }

  /** A page that comes to the front connects at once; one that was left lets go after a while. */
  look() {
    clearTimeout(this.leaving);
    if (document.hidden) {
      this.leaving = setTimeout(() => {
        this.letGo();
        clearTimeout(this.timer);
        this.listener.ongap();
      }, HIDDEN);
    } else if (!this.cut) this.connect();
  }

  letGo() {
    const { cut } = this;
    this.cut = null;
    clearTimeout(this.silence);
    cut?.abort();
  }

  close() {
    this.isClosed = true;
    this.letGo();
    clearTimeout(this.timer);
    clearTimeout(this.leaving);
    document.removeEventListener("visibilitychange", this.onvisible);
    removeEventListener("online", this.onvisible);
  }
}
